//! The random generator of ns-3: MRG32k3a with streams and substreams.
//!
//! Two linear recurrences of order three, modulo m1 and m2. A stream begins 2^127 draws after the previous
//! one, a substream 2^76.
//!
//! Source: L'Ecuyer, Simard, Chen, Kelton, "An Object-Oriented Random-Number Package with Many Long Streams
//! and Substreams", Operations Research 50(6), 2002.

const M1: u64 = 4_294_967_087;
const M2: u64 = 4_294_944_443;
/// x(n) = A12 x(n-2) - A13N x(n-3) mod m1, y(n) = A21 y(n-1) - A23N y(n-3) mod m2.
const A12: u64 = 1_403_580;
const A13N: u64 = 810_728;
const A21: u64 = 527_612;
const A23N: u64 = 1_370_589;
const NORM: f64 = 1.0 / (M1 as f64 + 1.0);

type Matrix = [[u64; 3]; 3];

/// The states of both recurrences, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct Mrg32k3a {
    state: [[u64; 3]; 2],
}

fn times(a: &Matrix, b: &Matrix, m: u64) -> Matrix {
    let mut product = [[0; 3]; 3];
    for (row, out) in product.iter_mut().enumerate() {
        for (column, cell) in out.iter_mut().enumerate() {
            // Each product is below 2^64, the sum is not.
            *cell = (0..3).fold(0, |sum, k| (sum + a[row][k] * b[k][column] % m) % m);
        }
    }
    product
}

/// The matrix for `steps` times 2^`twos` steps.
fn power(a: &Matrix, steps: u64, twos: u32, m: u64) -> Matrix {
    let mut base = *a;
    (0..twos).for_each(|_| base = times(&base, &base, m));
    let mut result = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    let mut left = steps;
    while left > 0 {
        if left & 1 == 1 {
            result = times(&result, &base, m);
        }
        base = times(&base, &base, m);
        left >>= 1;
    }
    result
}

fn apply(a: &Matrix, v: &[u64; 3], m: u64) -> [u64; 3] {
    a.map(|row| (0..3).fold(0, |sum, k| (sum + row[k] * v[k] % m) % m))
}

impl Mrg32k3a {
    pub fn new(seed: u32, stream: u64, substream: u64) -> Mrg32k3a {
        let first: Matrix = [[0, 1, 0], [0, 0, 1], [M1 - A13N, A12, 0]];
        let second: Matrix = [[0, 1, 0], [0, 0, 1], [M2 - A23N, 0, A21]];
        let state = [(&first, M1), (&second, M2)].map(|(matrix, m)| {
            let start = [u64::from(seed); 3];
            let at_stream = apply(&power(matrix, stream, 127, m), &start, m);
            apply(&power(matrix, substream, 76, m), &at_stream, m)
        });
        Mrg32k3a { state }
    }

    /// Returns a number between 0 and 1, exclusive.
    pub fn next(&mut self) -> f64 {
        let [x, y] = &mut self.state;
        let p1 = (A12 * x[1] % M1 + (M1 - A13N) * x[0] % M1) % M1;
        let p2 = (A21 * y[2] % M2 + (M2 - A23N) * y[0] % M2) % M2;
        *x = [x[1], x[2], p1];
        *y = [y[1], y[2], p2];
        let difference = if p1 > p2 { p1 - p2 } else { p1 + M1 - p2 };
        difference as f64 * NORM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_s_first_stream_gives_its_published_numbers() {
        // RngStreams' test: seed 12345, first stream.
        let mut first = Mrg32k3a::new(12_345, 0, 0);
        assert!((first.next() - 0.127_011_122_046_577_2).abs() < 1e-12);
        assert!((first.next() - 0.318_527_565_396_751_8).abs() < 1e-12);
        // A stream is 2^51 substreams long.
        let (mut stream, mut substreams) = (Mrg32k3a::new(7, 1, 0), Mrg32k3a::new(7, 0, 1 << 51));
        assert_eq!(stream.next(), substreams.next());
    }
}
