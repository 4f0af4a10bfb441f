use super::*;

#[test]
fn values_of_32_bits_at_epsilon_0_0025_need_13_bits() {
    // The paper says 16 (§4.3): ln(2^32) / (2 ln 1.0025) = 4 441.7 codes, 13 bits.
    assert_eq!(Scale::Multiplicative { epsilon: 0.0025 }.bits_for(4_294_967_295.0), 13);
    // 16 bits would allow epsilon 0.00017.
    let Scale::Multiplicative { epsilon } = Scale::reaching(4_294_967_295.0, 16) else { panic!() };
    assert!((epsilon - 0.000_169_2).abs() < 1e-6, "{epsilon}");
}

#[test]
fn the_ranges_of_the_evaluation_are_those_of_the_scripts() {
    // Spec: 8 bits at 0.022 reach 66 063, 4 bits at 0.42 reach 37 038, 8 bits at 0.025 reach 2.9e5.
    assert_eq!(Scale::Multiplicative { epsilon: 0.022 }.largest(8).round(), 66_063.0);
    assert_eq!(Scale::Multiplicative { epsilon: 0.42 }.largest(4).round(), 37_038.0);
    assert!((Scale::Multiplicative { epsilon: 0.025 }.largest(8) / 2.9e5 - 1.0).abs() < 0.02);
    assert_eq!(Scale::Exact.bits_for(255.0), 8);
    assert_eq!(Scale::Additive { delta: 4.0 }.bits_for(255.0), 6);
}

#[test]
fn a_frequency_becomes_units_rounded_up() {
    let units = |frequency| {
        Query {
            name: String::new(),
            value: Value::SwitchId,
            aggregation: Aggregation::CountAbove { threshold: 0 },
            bits: 1,
            copies: 1,
            frequency,
            flow: FlowKey::All,
            space: None,
        }
        .demand()
    };
    assert_eq!(
        [units(1.0), units(0.9375), units(0.0625), units(0.3), units(1e-9)],
        [65_536, 61_440, 4_096, 19_661, 1]
    );
}
