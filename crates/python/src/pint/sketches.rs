//! The sketches by themselves, for users and for tests that compare them with others.

use pint::sketch::kll::{self, Kll, Real};
use pint::sketch::space_saving::{MAX_COUNTERS, SpaceSaving};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{input, whole};

/// What a whole number of 64 bits is called in errors.
const WORD: &str = "a whole number from 0 to 2^64 - 1";

/// Errors: a share that is not from 0 to 1.
fn checked_share(share: f64) -> PyResult<f64> {
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(input(format!("share: expected a number from 0 to 1, found {share}")))
}

/// The two sketches of a merge. Errors: they are one.
fn other_than<T>(one: &Bound<'_, T>, other: &Bound<'_, T>) -> PyResult<()> {
    if one.as_ptr() == other.as_ptr() {
        return Err(input("merge: expected another sketch, found this one"));
    }
    Ok(())
}

/// KLL sketch of floating-point numbers.
#[pyclass(module = "weftline._native")]
pub struct QuantileSketch(Kll<Real>);

#[pymethods]
impl QuantileSketch {
    #[new]
    #[pyo3(signature = (k=None, seed=None), text_signature = "(k=200, seed=1)")]
    fn new(k: Option<&Bound<'_, PyAny>>, seed: Option<&Bound<'_, PyAny>>) -> PyResult<QuantileSketch> {
        let expected = format!("a whole number from {} to {}", kll::MIN_K, kll::MAX_K);
        let k = k.map_or(Ok(200), |k| whole(k, "k", &expected))?;
        if !(kll::MIN_K..=kll::MAX_K).contains(&k) {
            return Err(input(format!("k: expected {expected}, found {k}")));
        }
        let seed = seed.map_or(Ok(1), |seed| whole(seed, "seed", WORD))?;
        Ok(QuantileSketch(Kll::new(k, seed)))
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<QuantileSketch> {
        Kll::from_bytes(bytes).map(QuantileSketch).map_err(input)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// Takes numbers in; NaN is refused.
    fn update(&mut self, numbers: Vec<f64>) -> PyResult<()> {
        if numbers.iter().any(|number| number.is_nan()) {
            return Err(input("numbers: expected no NaN"));
        }
        numbers.into_iter().for_each(|number| self.0.update(Real::from(number)));
        Ok(())
    }

    fn merge(one: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        other_than(one, other)?;
        one.borrow_mut().0.merge(&other.borrow().0).map_err(input)
    }

    /// Quantiles, one for each of `shares` (0 to 1); None of an empty stream.
    fn quantiles(&self, shares: Vec<f64>) -> PyResult<Option<Vec<f64>>> {
        let shares = shares.into_iter().map(checked_share).collect::<PyResult<Vec<f64>>>()?;
        let Some(view) = self.0.sorted() else { return Ok(None) };
        Ok(Some(shares.into_iter().map(|share| view.quantile(share).into()).collect()))
    }

    /// A quantile, and the bars that hold it with `confidence`: (value, low, high), None where the samples are too few.
    #[allow(clippy::type_complexity)] // a tuple is what Python gets
    fn interval(&self, share: f64, confidence: f64) -> PyResult<Option<(f64, Option<f64>, Option<f64>)>> {
        checked_share(share)?;
        if !(confidence > 0.0 && confidence < 1.0) {
            let expected = "confidence: expected a number above 0 and below 1";
            return Err(input(format!("{expected}, found {confidence}")));
        }
        let found = self.0.sorted().map(|view| view.interval(share, confidence));
        Ok(found.map(|found| (found.value.into(), found.low.map(f64::from), found.high.map(f64::from))))
    }

    /// Shares of the stream that are at most each number.
    fn ranks(&self, numbers: Vec<f64>) -> Vec<f64> {
        let view = self.0.sorted();
        numbers.into_iter().map(|x| view.as_ref().map_or(0.0, |view| view.rank(Real::from(x)))).collect()
    }

    /// Rank error with 99 % confidence; 0 while every number is kept.
    #[getter]
    fn rank_error(&self) -> f64 {
        if self.0.is_exact() { 0.0 } else { kll::rank_error(self.0.k()) }
    }

    #[getter]
    fn retained(&self) -> usize {
        self.0.retained()
    }

    fn __len__(&self) -> usize {
        self.0.len() as usize
    }
}

/// Space-Saving sketch of whole numbers.
#[pyclass(module = "weftline._native")]
pub struct FrequentSketch(SpaceSaving);

#[pymethods]
impl FrequentSketch {
    #[new]
    fn new(counters: &Bound<'_, PyAny>) -> PyResult<FrequentSketch> {
        let expected = format!("a whole number from 1 to {MAX_COUNTERS}");
        let counters = whole(counters, "counters", &expected)?;
        if !(1..=MAX_COUNTERS).contains(&counters) {
            return Err(input(format!("counters: expected {expected}, found {counters}")));
        }
        Ok(FrequentSketch(SpaceSaving::new(counters)))
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<FrequentSketch> {
        SpaceSaving::from_bytes(bytes).map(FrequentSketch).map_err(input)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    fn update(&mut self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        // All of them first: a sketch has all values of a call, or none.
        let found = values.extract::<Vec<u64>>().or_else(|_| {
            let named = |value: PyResult<Bound<'_, PyAny>>| whole(&value?, "values", WORD);
            values.try_iter()?.map(named).collect::<PyResult<Vec<u64>>>()
        })?;
        found.into_iter().for_each(|value| self.0.update(value));
        Ok(())
    }

    fn merge(one: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        other_than(one, other)?;
        one.borrow_mut().0.merge(&other.borrow().0);
        Ok(())
    }

    /// Values that may make up `share` of the stream: (value, minimum count, maximum count).
    fn frequent(&self, share: f64) -> PyResult<Vec<(u64, u64, u64)>> {
        let found = self.0.frequent(checked_share(share)?);
        let bounds = found.iter().map(|found| (found.value, found.count - found.excess, found.count));
        Ok(bounds.collect())
    }

    fn __len__(&self) -> usize {
        self.0.len() as usize
    }
}
