//! Sketches from any bytes, also with a valid checksum: refused, or good to work on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pint::sketch::kll::Kll;
use pint::sketch::space_saving::SpaceSaving;

fuzz_target!(|bytes: &[u8]| {
    // Whatever is read is written the same, and continues to work.
    if let Ok(mut sketch) = Kll::<u16>::from_bytes(bytes) {
        assert_eq!(sketch.to_bytes(), bytes);
        (0..100).for_each(|item| sketch.update(item));
        let copy = sketch.clone();
        let _ = (sketch.quantile(0.5), sketch.merge(&copy));
    }
    if let Ok(mut sketch) = SpaceSaving::from_bytes(bytes) {
        assert_eq!(sketch.to_bytes(), bytes);
        (0..100).for_each(|item| sketch.update(item));
        let copy = sketch.clone();
        sketch.merge(&copy);
    }
});
