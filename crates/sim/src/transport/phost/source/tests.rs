use super::*;
use crate::parameters::{Nothing, Parameters};
use crate::transport::{ReadContext, TransportParameters};

#[test]
fn tokens_that_have_expired_are_not_counted_before_they_are_thrown_away() {
    let cx = ReadContext { base_rtt: &|_| Time::from_us(3), ..ReadContext::listing() };
    let config = PhostConfig::read(&mut Parameters::new(&mut Nothing::default()), &cx).unwrap();
    let rank = Rank::new(config.policy, Time::MAX, 10, 0);
    let mut flow =
        SourceFlow::new(0, &FlowSpec { size: 10_000, ..FlowSpec::default() }, &config, rank, Time::ZERO);
    for packet in 0..3 {
        flow.take(Token { expires: Time::from_us(5 * u64::from(packet)), packet, number: packet });
    }
    assert_eq!([0, 5, 6, 11].map(|us| flow.tokens(Time::from_us(us))), [3, 2, 1, 0]);
    assert!(flow.has_tokens(), "they are thrown away when a packet is to be sent");
}
