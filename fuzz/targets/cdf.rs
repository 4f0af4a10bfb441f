//! Tables of flow sizes from arbitrary bytes; those that read must give sizes and means.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_sim::workload::SizeDistribution;

fuzz_target!(|bytes: &[u8]| {
    let Ok(sizes) = SizeDistribution::from_bytes(bytes, "fuzz.cdf") else { return };
    let quantiles = [0.0, 0.001, 0.25, 0.5, 0.75, 0.999, 1.0].map(|p| sizes.quantile(p));
    assert!(quantiles.is_sorted(), "{quantiles:?}");
    assert!(quantiles[0] > 0);
    assert!(sizes.mean().is_finite() && sizes.mean() >= 0.0);
    assert!(sizes.mean_packets(1_000_000) >= 1.0);
});
