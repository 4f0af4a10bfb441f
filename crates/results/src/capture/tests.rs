use super::*;
use crate::scratch::Scratch;
use weftline_sim::config::CaptureConfig;

fn plan(max_bytes: u64) -> CapturePlan {
    CapturePlan { links: vec![("a->b".into(), 10_000_000_000)], max_bytes: Bytes(max_bytes), kept: None }
}

fn frames(times: &[u64]) -> Frames {
    let mut frames = Frames::default();
    for &ns in times {
        let from = frames.bytes.len();
        frames.bytes.extend([1, 2, 3, 4, 5]);
        let bytes = from..from + 5;
        frames.frames.push(Frame { time: Time::from_ns(ns), link: 0, length: 1000, bytes });
    }
    frames
}

/// 28 bytes and the application's name; 20 bytes, a name of 4, a rate of 8 and a resolution of 1.
const HEADS: u64 = 28 + (4 + 16) + 4 + 20 + (4 + 4) + (4 + 8) + (4 + 4) + 4;

#[test]
fn the_bytes_of_a_file_are_those_of_the_format() {
    let dir = Scratch::new();
    let path = dir.join("a.pcapng");
    let mut file = CaptureFile::create(&path, &plan(10_000)).unwrap();
    assert!(file.append(&frames(&[(1 << 32) + 7])).unwrap());
    file.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(concat!("weftline ", env!("CARGO_PKG_VERSION")).len().next_multiple_of(4), 16);
    assert_eq!(bytes.len() as u64, HEADS + 40);
    assert_eq!(bytes[..12], [10, 13, 13, 10, 52, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a]);
    let interface = &bytes[52..];
    assert_eq!(interface[..16], [1, 0, 0, 0, 52, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(interface[16..24], [2, 0, 4, 0, b'a', b'-', b'>', b'b']);
    assert_eq!(interface[24..36], [8, 0, 8, 0, 0, 0xe4, 0x0b, 0x54, 2, 0, 0, 0]);
    assert_eq!(interface[36..44], [9, 0, 1, 0, 9, 0, 0, 0]);
    let packet = &bytes[HEADS as usize..];
    let words = [6, 40, 0, 1, 7, 5, 1000].map(u32::to_le_bytes).concat();
    assert_eq!(packet[..28], words);
    assert_eq!(packet[28..], [1, 2, 3, 4, 5, 0, 0, 0, 40, 0, 0, 0]);
}

/// As `weftline check` computes it, so that it refuses what a run would.
#[test]
fn the_heads_of_a_file_are_as_long_as_the_names_of_its_links_make_them() {
    let dir = Scratch::new();
    for names in [&["a->b"][..], &["h->s", "host10->leaf0", "leaf0->spine1 (leaf0.p10)"], &[]] {
        let links: Vec<_> = names.iter().map(|name| (name.to_string(), 1)).collect();
        let Bytes(needed) = CaptureConfig::head_bytes(&links);
        let create = |max_bytes: u64| {
            let plan = CapturePlan { links: links.clone(), ..plan(max_bytes) };
            CaptureFile::create(&dir.join("a.pcapng"), &plan).map(|file| file.bytes)
        };
        assert_eq!(create(needed).unwrap(), needed);
        assert!(create(needed - 1).is_err());
    }
}

#[test]
fn a_file_ends_before_the_packet_that_has_no_room() {
    let dir = Scratch::new();
    let path = dir.join("a.pcapng");
    let mut file = CaptureFile::create(&path, &plan(HEADS + 80)).unwrap();
    assert!(!file.append(&frames(&[1, 2, 3, 4])).unwrap());
    assert!(!file.append(&frames(&[5])).unwrap());
    file.close().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), HEADS + 80);
    let summary = file.summary();
    assert_eq!((summary["packets"].as_u64(), summary["stopped_ns"].as_f64()), (Some(2), Some(3.0)));
    let message = file.warning().unwrap();
    assert!(
        message.contains("pcap_bytes") && message.contains("after 2 packets") && message.contains("3ns"),
        "{message}"
    );
}

#[test]
fn a_place_that_cannot_be_written_and_a_limit_below_the_heads_are_named() {
    let dir = Scratch::new();
    let Err(error) = CaptureFile::create(&dir.join("none/a.pcapng"), &plan(10_000)) else { panic!() };
    assert!(error.to_string().contains("none/a.pcapng"), "{error}");
    let Err(error) = CaptureFile::create(&dir.join("a.pcapng"), &plan(50)) else { panic!() };
    assert!(error.to_string().contains("pcap_bytes") && error.to_string().contains("1 link"), "{error}");
}
