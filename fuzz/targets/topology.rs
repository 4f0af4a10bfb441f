//! Topology files from arbitrary bytes: the first one chooses the format. What reads must be valid, and the same after
//! it was written as TOML and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_sim::topology::file::FileSpec;
use weftline_sim::topology::write_toml;

fuzz_target!(|bytes: &[u8]| {
    let Some((&format, rest)) = bytes.split_first() else { return };
    let format = match format {
        b'h' => "hpcc",
        b'g' => "gml",
        b'x' => "graphml",
        b't' => "htsim",
        _ => "toml",
    };
    let spec = FileSpec { file: "fuzz".to_string(), ..FileSpec::default() };
    let Ok((topology, _)) = spec.parse(format, rest) else { return };
    topology.validate().expect("what was read is valid");
    if format == "toml" {
        let text = write_toml(&topology);
        let (again, _) = spec.parse("toml", text.as_bytes()).expect("what was written can be read");
        assert_eq!(again, topology);
    }
});
