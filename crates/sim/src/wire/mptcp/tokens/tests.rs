use super::*;

const KEYS: [u64; 2] = [0xc6e4_dbd3_8c69_e6ed, 0xeffb_bbc6_6711_9fcb];

#[test]
fn tokens_are_those_of_a_live_handshake() {
    // Keys and tokens of a Linux handshake of version 1, and what version 0 makes of the second key.
    assert_eq!(token(Version::V1, KEYS[0]), 0xe9d6_2dff);
    assert_eq!(token(Version::V1, KEYS[1]), 0xe7c7_6f1d);
    assert_eq!(token(Version::V0, KEYS[1]), 0x8955_fe03);
}

#[test]
fn proofs_are_those_of_another_implementation_of_hmac() {
    // Python's hmac, over the bytes of the nonces under the bytes of the keys.
    let nonces = [0x0123_4567, 0x89ab_cdef];
    assert_eq!(
        proof(Version::V1, KEYS, nonces),
        [0x75e1_a7ee, 0x3d5e_ba8a, 0xf95d_cf0c, 0x521c_c440, 0xd60c_27a9]
    );
    assert_eq!(
        proof(Version::V0, KEYS, nonces),
        [0x8384_46e6, 0xde8e_b01b, 0x443d_6322, 0xea14_2c75, 0x264d_1d99]
    );
    assert_eq!(short(proof(Version::V1, KEYS, nonces)), 0x75e1_a7ee_3d5e_ba8a);
}

#[test]
fn the_proof_of_an_address_is_that_of_a_live_announcement() {
    // Linux 6.18, which announced 10.0.0.2 with port 9003 as its address 3: its key, that of the other end, and what it sent.
    let keys = [0x502d_a795_5b91_f128, 0x6b22_5656_898f_9a9c];
    assert_eq!(announcement(keys, 3, [10, 0, 0, 2], 9003), 0x9697_1bb1_0622_5cf7);
}
