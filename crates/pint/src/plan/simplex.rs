//! The simplex method for small linear programs: maximise c x under A x <= b, x >= 0, with b >= 0.
//!
//! Few rows (at most one per query and one more), many columns (one per query set): the inverse of the basis
//! is kept, columns are priced against it. The entering column is the one of largest gain; while the value
//! stands still, the first that gains (Bland), which cannot cycle. The same input gives the same vertex.
//!
//! Source: Dantzig, "Linear Programming and Extensions", 1963 (revised method); Bland, Mathematics of
//! Operations Research 2(2), 1977 (the rule).

/// What is smaller counts as zero.
const TOLERANCE: f64 = 1e-9;
/// Pivots after which the best solution so far is given back; never seen, but arithmetic rounds.
const MAX_PIVOTS: usize = 20_000;

#[derive(Debug, Clone)]
pub struct Solution {
    pub value: f64,
    /// One per column; no more of them than there are rows differ from zero.
    pub x: Vec<f64>,
    /// Price of each row: what the value gains when its limit grows by one.
    pub prices: Vec<f64>,
}

/// Maximises `gains` x. `columns[j]` is the j-th column of A, of the length of `limits`. None if the value
/// has no bound.
pub fn maximise(gains: &[f64], columns: &[Vec<f64>], limits: &[f64]) -> Option<Solution> {
    debug_assert!(gains.len() == columns.len() && limits.iter().all(|&limit| limit >= 0.0));
    let mut basis = Basis::new(columns.len(), limits);
    let mut value = 0.0;
    let mut standing = 0;
    for _ in 0..MAX_PIVOTS {
        let prices = basis.prices(gains);
        let Some(entering) = entering(gains, columns, &prices, standing > limits.len()) else { break };
        let direction = basis.direction(column(columns, entering, limits.len()));
        let row = basis.leaving(&direction)?;
        basis.pivot(row, entering, &direction);
        basis.refresh(columns, limits);
        let now = basis.value(gains);
        standing = if now > value + TOLERANCE { 0 } else { standing + 1 };
        value = now;
    }
    let mut x = vec![0.0; columns.len()];
    for (&member, &level) in basis.members.iter().zip(&basis.levels) {
        if member < columns.len() {
            x[member] = level.max(0.0);
        }
    }
    Some(Solution { value, x, prices: basis.prices(gains) })
}

/// The column that comes into the basis: slacks follow the given columns. None at the optimum.
fn entering(gains: &[f64], columns: &[Vec<f64>], prices: &[f64], first: bool) -> Option<usize> {
    let structural = columns.iter().zip(gains).map(|(column, gain)| gain - dot(column, prices));
    let reduced = structural.chain(prices.iter().map(|price| -price)).enumerate();
    let mut gaining = reduced.filter(|(_, gain)| *gain > TOLERANCE);
    if first {
        return gaining.next().map(|(j, _)| j);
    }
    gaining
        .fold(None, |best: Option<(usize, f64)>, (j, gain)| match best {
            Some((_, max)) if max >= gain => best,
            _ => Some((j, gain)),
        })
        .map(|(j, _)| j)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The j-th column, slacks included.
fn column(columns: &[Vec<f64>], j: usize, rows: usize) -> Vec<f64> {
    match columns.get(j) {
        Some(column) => column.clone(),
        None => (0..rows).map(|row| if row == j - columns.len() { 1.0 } else { 0.0 }).collect(),
    }
}

struct Basis {
    /// The column of each row; from the number of given columns on, slacks.
    members: Vec<usize>,
    /// The value of each row's column.
    levels: Vec<f64>,
    inverse: Vec<Vec<f64>>,
}

impl Basis {
    /// All slacks; they are numbered after the `given` columns.
    fn new(given: usize, limits: &[f64]) -> Basis {
        let rows = limits.len();
        let unit = |row: usize| (0..rows).map(|j| if j == row { 1.0 } else { 0.0 }).collect();
        Basis {
            members: (given..given + rows).collect(),
            levels: limits.to_vec(),
            inverse: (0..rows).map(unit).collect(),
        }
    }

    fn prices(&self, gains: &[f64]) -> Vec<f64> {
        let gain = |member: usize| gains.get(member).copied().unwrap_or(0.0);
        let price = |column: usize| {
            self.members.iter().zip(&self.inverse).map(|(&member, row)| gain(member) * row[column]).sum()
        };
        (0..self.members.len()).map(price).collect()
    }

    fn value(&self, gains: &[f64]) -> f64 {
        self.members
            .iter()
            .zip(&self.levels)
            .map(|(&j, level)| gains.get(j).copied().unwrap_or(0.0) * level)
            .sum()
    }

    fn direction(&self, column: Vec<f64>) -> Vec<f64> {
        self.inverse.iter().map(|row| dot(row, &column)).collect()
    }

    /// The row that limits the step; of equal ones that with the first column. None without a limit.
    fn leaving(&self, direction: &[f64]) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for (row, &step) in direction.iter().enumerate().filter(|(_, step)| **step > TOLERANCE) {
            let ratio = self.levels[row].max(0.0) / step;
            best = match best {
                Some((_, min)) if ratio > min + 1e-13 => best,
                Some((old, min)) if ratio > min - 1e-13 && self.members[old] < self.members[row] => best,
                _ => Some((row, ratio)),
            };
        }
        best.map(|(row, _)| row)
    }

    fn pivot(&mut self, row: usize, entering: usize, direction: &[f64]) {
        let step = direction[row];
        self.inverse[row].iter_mut().for_each(|cell| *cell /= step);
        let pivot = self.inverse[row].clone();
        for (other, &factor) in direction.iter().enumerate().filter(|(other, _)| *other != row) {
            self.inverse[other].iter_mut().zip(&pivot).for_each(|(cell, from)| *cell -= factor * from);
        }
        self.members[row] = entering;
    }

    /// One Newton step on the inverse, X (2 I - B X), which takes back what rounding has added; then the
    /// levels.
    fn refresh(&mut self, columns: &[Vec<f64>], limits: &[f64]) {
        let rows = limits.len();
        let basic: Vec<Vec<f64>> = self.members.iter().map(|&j| column(columns, j, rows)).collect();
        let mut residual = vec![vec![0.0; rows]; rows];
        for (i, line) in residual.iter_mut().enumerate() {
            for (j, cell) in line.iter_mut().enumerate() {
                let product: f64 =
                    basic.iter().zip(&self.inverse).map(|(column, row)| column[i] * row[j]).sum();
                *cell = if i == j { 2.0 - product } else { -product };
            }
        }
        let line = |row: &Vec<f64>| {
            (0..rows).map(|j| row.iter().zip(&residual).map(|(x, r)| x * r[j]).sum()).collect()
        };
        self.inverse = self.inverse.iter().map(line).collect();
        self.levels = self.inverse.iter().map(|row| dot(row, limits)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_textbook_program_has_its_optimum_and_prices() {
        // max 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18: x = 2, y = 6, value 36, prices 0, 3/2, 1 (Hillier and
        // Lieberman).
        let solved =
            maximise(&[3.0, 5.0], &[vec![1.0, 0.0, 3.0], vec![0.0, 2.0, 2.0]], &[4.0, 12.0, 18.0]).unwrap();
        assert!((solved.value - 36.0).abs() < 1e-9);
        for (found, expected) in solved.x.iter().chain(&solved.prices).zip([2.0, 6.0, 0.0, 1.5, 1.0]) {
            assert!((found - expected).abs() < 1e-9, "{solved:?}");
        }
    }

    #[test]
    fn a_program_on_which_the_plain_rule_cycles_ends() {
        // Beale 1955: max 3/4 a - 20 b + 1/2 c - 6 d; the optimum is 5/4.
        let columns =
            [vec![0.25, 0.5, 0.0], vec![-8.0, -12.0, 0.0], vec![-1.0, -0.5, 1.0], vec![9.0, 3.0, 0.0]];
        let solved = maximise(&[0.75, -20.0, 0.5, -6.0], &columns, &[0.0, 0.0, 1.0]).unwrap();
        assert!((solved.value - 1.25).abs() < 1e-9, "{solved:?}");
    }

    #[test]
    fn a_value_without_bound_is_reported() {
        assert!(maximise(&[1.0], &[vec![-1.0]], &[1.0]).is_none());
    }
}
