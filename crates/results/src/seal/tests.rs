use super::*;

#[test]
fn every_flipped_bit_cut_and_appended_byte_of_a_sealed_text_is_noticed() {
    let text = sealed("{\"name\": \"web\", \"seeds\": [1, 2]}");
    assert_eq!(seal_of(text.as_bytes()), Seal::Whole);
    for place in 0..text.len() {
        for bit in 0..8 {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 1 << bit;
            assert_eq!(seal_of(&bytes), Seal::Broken, "byte {place}, bit {bit}");
        }
    }
    for byte in 0..=255 {
        let bytes = [text.as_bytes(), &[byte]].concat();
        assert_eq!(seal_of(&bytes), Seal::Broken, "{byte} appended");
    }
    // A text cut off before the seal is not a JSON object, which its reader notices.
    for length in 0..text.len() {
        assert_ne!(seal_of(&text.as_bytes()[..length]), Seal::Whole, "{length}");
    }
}

#[test]
fn what_earlier_versions_wrote_bears_no_seal() {
    assert_eq!(seal_of(b"{\"format\": 1, \"begun_by\": \"weftline 0.1.0\"}\n"), Seal::Absent);
    assert_eq!(
        seal_of(b"{\"sha256\": \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}"),
        Seal::Absent
    );
}

#[test]
fn the_digest_is_xxh3_of_128_bits() {
    // XXH3_128bits of nothing, from the reference implementation's own tests.
    assert_eq!(hex(digest(b"")), "99aa06d3014798d86001c324468d497f");
}
