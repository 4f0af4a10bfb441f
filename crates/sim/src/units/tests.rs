use super::*;

#[test]
fn quantities_read_back_as_they_are_written() {
    for text in [
        "10us",
        "1.5ms",
        "83ns",
        "12.24us",
        "1ps",
        "2s",
        "536.870912ms",
        "8.830022592s",
        "10.000001ms",
        "9999.999us",
    ] {
        assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
    }
    for text in ["100Gbps", "2.5Gbps", "50Mbps", "1bps", "209.265175Mbps", "100000Gbps"] {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
    }
    for text in ["32MiB", "400KB", "1.048KB", "999B", "1.5MB", "178.572791MB", "1.000000001GB", "0B"] {
        assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
    }
}

#[test]
fn a_missing_unit_is_reported_with_an_example() {
    let error = "100".parse::<Rate>().unwrap_err().to_string();
    assert!(error.contains("no unit") && error.contains("100Gbps"), "{error}");
    assert!("-1us".parse::<Time>().unwrap_err().to_string().contains("negative"));
    assert!("1e9us".parse::<Time>().is_err());
    assert!("99999999999s".parse::<Time>().is_err());
}

#[test]
fn what_would_become_another_quantity_is_refused() {
    let error = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
    assert!(error("0.5bps").contains("not a whole number of bps"), "{}", error("0.5bps"));
    assert!("1.5B".parse::<Bytes>().is_err() && "0.2ps".parse::<Time>().is_err());
    for text in ["1.0005KB", "1.2345KB", "66.6B", "1.0000000001GB"] {
        let error = text.parse::<Bytes>().unwrap_err().to_string();
        assert!(error.contains("not a whole number of B"), "{error}");
    }
    for (text, bytes) in
        [("1.001KB", 1001), ("50.001KB", 50_001), ("1.1KB", 1100), ("1.234567891GB", 1_234_567_891)]
    {
        assert_eq!(text.parse::<Bytes>().unwrap(), Bytes(bytes), "{text}");
    }
    assert_eq!("0.1MiB".parse::<Bytes>().unwrap(), Bytes(104_858));
    assert_eq!("33.3333333333Gbps".parse::<Rate>().unwrap(), Rate(33_333_333_333));
    assert_eq!("0bps".parse::<Rate>().unwrap(), Rate(0));
    for text in
        ["1__0Gbps", "_1Gbps", "1_Gbps", "1_.5Gbps", "NaNGbps", "\u{ff11}Gbps", "1.2.3Gbps", "Gbps", ""]
    {
        assert!(error(text).starts_with("expected a rate with its unit"), "{}", error(text));
    }
    assert_eq!("1_000Mbps".parse::<Rate>().unwrap(), Rate::from_gbps(1));
}

#[test]
fn a_byte_takes_a_whole_number_of_picoseconds_at_common_rates() {
    assert_eq!(Rate::from_gbps(100).transmission_time(1048), Time(83_840));
    assert_eq!(Rate::from_gbps(400).transmission_time(1048), Time(20_960));
    assert_eq!(Rate(3).transmission_time(1), Time(2_666_666_666_667));
    assert_eq!(Rate(1).transmission_time(u64::MAX), Time::MAX);
}
