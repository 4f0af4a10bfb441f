use super::*;
use crate::csv::MAX_LINE;
use crate::recorded::{Address, Flow};
use proptest::prelude::*;

fn read(text: &str) -> Result<Vec<Recorded>, String> {
    let reader = CsvReader::new(text.as_bytes(), "d.csv").map_err(|error| error.to_string())?;
    reader.map(|row| row.map_err(|error| error.to_string())).collect()
}

const HEADER: &str = "packet_id,digest,hops,plan_version,src,time_ns,note\n";

#[test]
fn columns_in_any_order_others_passed_over() {
    let text = format!("\u{feff}{HEADER}7,0xff,3,1,10.0.0.1,12.75,\"a, \"\"b\"\"\"\r\n\n8,1,2,0x2,,,\n");
    let rows = read(&text).unwrap();
    let source = Address::Ip("10.0.0.1".parse().unwrap());
    let flow = Flow { source, ..Flow::default() };
    let first = Recorded {
        packet: 7,
        digest: 255,
        hops: 3,
        plan_version: 1,
        time_ns: 12,
        flow,
        ..Recorded::default()
    };
    let second = Recorded { packet: 8, digest: 1, hops: 2, plan_version: 2, ..Recorded::default() };
    assert_eq!(rows, [first, second]);
}

#[test]
fn errors_tell_file_line_column_and_what_was_expected() {
    for (text, message) in [
        ("", "d.csv:1: expected a line with the names of the columns, found nothing"),
        (
            "packet_id,digests,hops,plan_version\n",
            "d.csv:1: column digest: the header does not have it: unknown column \"digest\": did you mean \"digests\"?",
        ),
        (
            "packet_id,digest,hops,plan_version,hops\n",
            "d.csv:1: column hops: the header has it more than once",
        ),
        (
            "packet_id,digest,hops,plan_version\n1,2,3,4\n1,x,3,4\n",
            "d.csv:3: column digest: expected a whole number of at most 64 bits, decimal or 0x..., found \"x\"",
        ),
        (
            "packet_id,digest,hops,plan_version\n1,2,-3,4\n",
            "d.csv:2: column hops: expected a number of hops, found \"-3\"",
        ),
        ("packet_id,digest,hops,plan_version\n1,,3,4\n", "d.csv:2: column digest: expected a whole number"),
        (
            "packet_id,digest,hops,plan_version\n1,2,3,4294967296\n",
            "d.csv:2: column plan_version: expected a version of 32 bits",
        ),
        (
            "packet_id,digest,hops,plan_version\n1,2,3,4\n1,2",
            "d.csv:3: expected 4 fields, found 2 (the last line: is the file cut off?)",
        ),
        ("packet_id,digest,hops,plan_version\n1,2,3,4,5\n", "d.csv:2: expected 4 fields, found 5"),
        ("packet_id,digest,hops,plan_version\n1,\"2,3,4\n", "d.csv:2: column digest: a quote is not closed"),
        (
            "packet_id,digest,hops,plan_version\n1,\"2\"3,4\n",
            "d.csv:2: column digest: expected a comma after the closing quote",
        ),
        (
            "packet_id,digest,hops,plan_version,src\n1,2,3,4,10.0.0.256\n",
            "d.csv:2: column src: expected a host's number, an IPv4 or an IPv6 address, found \"10.0.0.256\"",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with(message), "{error}\n{message}");
    }
    let long = format!("{HEADER}{}", "1".repeat(MAX_LINE + 10));
    assert_eq!(read(&long).unwrap_err(), "d.csv:2: the line is longer than 65536 bytes");
    let mut reader =
        CsvReader::new(&b"packet_id,digest,hops,plan_version\n\xff,1,1,1\n1,1,1,1\n"[..], "d.csv").unwrap();
    assert_eq!(reader.next().unwrap().unwrap_err().to_string(), "d.csv:2: the text is not UTF-8");
    assert!(reader.next().is_none());
}

fn address() -> impl Strategy<Value = Address> {
    prop_oneof![
        Just(Address::Unknown),
        any::<u64>().prop_map(Address::Number),
        any::<std::net::Ipv4Addr>().prop_map(|a| Address::Ip(a.into())),
        any::<std::net::Ipv6Addr>().prop_map(|a| Address::Ip(a.into())),
    ]
}

prop_compose! {
    fn rows()(
        source in address(), destination in address(), sink in address(), ports: (u16, u16, u8), numbers: (u64, u64, u64, u64),
        small: (u32, u32, bool), has_id: bool,
    ) -> Recorded {
        let flow = Flow {
            id: has_id.then_some(numbers.3), source, destination, source_port: ports.0, destination_port: ports.1, protocol: ports.2,
        };
        let (hops, plan_version, looped) = small;
        Recorded { time_ns: numbers.0, flow, packet: numbers.1, digest: numbers.2, hops, plan_version, sink, looped }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(rows in prop::collection::vec(rows(), 0..20)) {
        let mut writer = CsvWriter::new(Vec::new()).unwrap();
        rows.iter().for_each(|row| writer.write(row).unwrap());
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        prop_assert_eq!(read(&text).unwrap(), rows);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), any::<u8>()], 0..200)) {
        let text = [HEADER.as_bytes(), &bytes].concat();
        if let Ok(reader) = CsvReader::new(&text[..], "d.csv") {
            prop_assert!(reader.count() <= 201);
        }
        let _ = CsvReader::new(&bytes[..], "d.csv").map(Iterator::count);
    }
}
