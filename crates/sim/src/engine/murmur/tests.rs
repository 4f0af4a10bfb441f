use super::*;

/// Published test vectors of the 32-bit variant.
#[test]
fn the_published_values_come_out() {
    assert_eq!(of_bytes(b"", 0), 0);
    assert_eq!(of_bytes(b"", 1), 0x514e_28b7);
    assert_eq!(of_bytes(b"", 0xffff_ffff), 0x81f1_6f39);
    assert_eq!(of_bytes(&[0xff; 4], 0), 0x7629_3b50);
    assert_eq!(of_bytes(&[0x21, 0x43, 0x65, 0x87], 0), 0xf55b_516b);
    assert_eq!(of_bytes(&[0x21, 0x43, 0x65, 0x87], 0x5082_edee), 0x2362_f9de);
    assert_eq!(of_bytes(&[0x21, 0x43, 0x65], 0), 0x7e4a_8634);
    assert_eq!(of_bytes(&[0x21, 0x43], 0), 0xa0f7_b07a);
    assert_eq!(of_bytes(&[0x21], 0), 0x7266_1cf4);
    assert_eq!(of_bytes(&[0; 4], 0), 0x2362_f9de);
    assert_eq!(of_bytes(&[0; 3], 0), 0x85f0_b427);
    assert_eq!(of_bytes(b"Hello, world!", 0x9747_b28c), 0x2488_4cba);
}

#[test]
fn words_and_their_bytes_have_one_hash() {
    for words in [&[][..], &[0], &[0x8765_4321], &[1, 2, 0xffff_ffff]] {
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        assert_eq!(of_words(words, 7), of_bytes(&bytes, 7), "{words:?}");
    }
}
