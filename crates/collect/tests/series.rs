//! Captures as points of observation.

use std::path::{Path, PathBuf};

use weftline_collect::series::{Points, Series};

/// A capture with packets of one byte at these times in ns; of an interface with a name, pcapng with times in
/// us.
fn write(folder: &Path, name: &str, times: &[u32], interface: Option<&str>) -> PathBuf {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = Vec::new();
    match interface {
        None => {
            file.extend(words(&[0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 101]));
            times.iter().for_each(|&time| {
                file.extend(words(&[0, time, 1, 1]));
                file.push(0);
            });
        }
        Some(interface) => {
            let mut block = |kind: u32, body: &[u8]| {
                let mut body = body.to_vec();
                body.resize(body.len().next_multiple_of(4), 0);
                let length = 12 + body.len() as u32;
                file.extend(words(&[kind, length]));
                file.extend(body);
                file.extend(words(&[length]));
            };
            block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
            let name = words(&[2 | (interface.len() as u32) << 16]);
            block(1, &[words(&[101, 0]), name, interface.as_bytes().to_vec()].concat());
            times.iter().for_each(|&time| block(6, &[words(&[0, 0, time, 1, 1]), vec![0]].concat()));
        }
    }
    let path = folder.join(name);
    std::fs::write(&path, file).unwrap();
    path
}

/// The names in the order in which they are read, each with its point.
fn read(paths: &[PathBuf], law: Points) -> Vec<(String, u16)> {
    let mut series = Series::open(paths.to_vec(), law).unwrap();
    let mut found = Vec::new();
    while let Some(mut turn) = series.next_turn().unwrap() {
        let (mut last_ns, mut packets) = (0, 0);
        while let Some(packet) = turn.reader.next_packet().unwrap() {
            last_ns = last_ns.max(packet.time_ns);
            packets += 1;
        }
        assert_eq!(turn.reader.packets(), packets);
        found.push((turn.path.file_name().unwrap().to_str().unwrap().to_owned(), turn.point));
        series.end(turn, last_ns);
    }
    found
}

fn points(expected: &[(&str, u16)]) -> Vec<(String, u16)> {
    expected.iter().map(|&(name, point)| (name.to_owned(), point)).collect()
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("weftline-series-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn captures_whose_times_overlap_are_different_points_in_any_order() {
    let folder = folder("overlap");
    let mut paths = vec![
        write(&folder, "upstream", &[10, 30, 20], None),
        write(&folder, "downstream", &[29, 40], None),
        write(&folder, "later", &[41, 50], None),
        write(&folder, "empty", &[], None),
    ];
    // When the last one begins both have ended: no name begins as its own, and the downstream one ended last.
    let expected = points(&[("empty", 0), ("upstream", 1), ("downstream", 2), ("later", 2)]);
    assert_eq!(read(&paths, Points::ByTime), expected);
    paths.reverse();
    assert_eq!(read(&paths, Points::ByTime), expected);
    assert_eq!(read(&paths, Points::Each).iter().map(|(_, point)| *point).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(read(&paths, Points::One).iter().all(|(_, point)| *point == 0));
    // The same file twice was seen at two points.
    assert_eq!(read(&[paths[1].clone(), paths[1].clone()], Points::ByTime)[1].1, 1);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_of_two_rotating_captures_continue_the_one_of_their_name() {
    let folder = folder("rotated");
    let paths = [
        write(&folder, "left.pcap", &[10, 19], None),
        write(&folder, "right.pcap", &[11, 18], None),
        write(&folder, "right.pcap1", &[20, 28], None),
        write(&folder, "left.pcap1", &[21, 29], None),
        write(&folder, "left.pcap2", &[29, 40], None),
    ];
    let expected =
        [("left.pcap", 0), ("right.pcap", 1), ("right.pcap1", 1), ("left.pcap1", 0), ("left.pcap2", 0)];
    assert_eq!(read(&paths, Points::ByTime), points(&expected));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_capture_of_another_interface_continues_nothing() {
    let folder = folder("interfaces");
    let paths = [
        write(&folder, "a", &[1], Some("eth0")),
        write(&folder, "b", &[2], Some("eth1")),
        write(&folder, "c", &[3], Some("eth0")),
        write(&folder, "d", &[4_000], None),
    ];
    let expected = points(&[("a", 0), ("b", 1), ("c", 0), ("d", 2)]);
    assert_eq!(read(&paths, Points::ByTime), expected);
    std::fs::remove_dir_all(folder).unwrap();
}
