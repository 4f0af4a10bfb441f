//! Unknown names, and the known one that is meant.

/// `unknown controller "hpc": did you mean "hpcc"? (known: ...)`
pub fn unknown<'n>(what: &str, found: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    let list = known.clone().collect::<Vec<_>>().join(", ");
    match nearest(found, known) {
        Some(near) => format!("unknown {what} \"{found}\": did you mean \"{near}\"? (known: {list})"),
        None => format!("unknown {what} \"{found}\" (known: {list})"),
    }
}

/// Returns the known name with the smallest edit distance from `found`, if it is similar enough.
pub fn nearest<'n>(found: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let length = found.chars().count();
    known
        .filter_map(|name| {
            let of = name.chars().count();
            let allowed = max_edits(length, of);
            // Each letter that only the longer name has is an edit, so that most names are excluded by their length.
            let more = length.min(COMPARED).abs_diff(of.min(COMPARED));
            let distance = (more <= allowed).then(|| edits(found, name))?;
            (distance <= allowed).then_some((distance, name))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The maximum edit distance of similar names of these lengths: a third of the letters of the longer one, and
/// no more than two of short ones. So `mtu` is not similar to `to`, nor `link` to `kind`.
fn max_edits(found: usize, name: usize) -> usize {
    ((found.max(name) + 1) / 3).min((found / 3).max(2))
}

/// The known key that is meant: it differs from `found` in one letter, or else in words that are left out (of
/// `link`, `host_link`), or is the one `by_meaning`, or the nearest.
pub fn nearest_key<'n>(
    found: &str,
    known: impl Iterator<Item = &'n str> + Clone,
    by_meaning: impl FnOnce() -> Option<String>,
) -> Option<String> {
    let near = nearest(found, known.clone());
    let longer = known.filter(|name| is_part(found, name)).min_by_key(|name| edits(found, name));
    let close = near.filter(|name| edits(found, name) <= 1).or(longer);
    close.map(str::to_string).or_else(by_meaning).or(near.map(str::to_string))
}

/// Whether `found` is one or several of the words of a name in a row.
fn is_part(found: &str, name: &str) -> bool {
    let words = |text: &str| {
        let text = text.to_lowercase();
        text.split(['_', '-']).map(str::to_string).collect::<Vec<_>>()
    };
    let part = words(found);
    found.chars().count() > 2 && words(name).windows(part.len()).any(|some| some == part)
}

/// The known names whose meaning has the word, or a phrase in brackets of which it is the initials: `tp` is
/// that of "(tensor parallel)".
pub fn meant<'n>(word: &str, known: impl Iterator<Item = (&'n str, &'n str)>) -> Vec<&'n str> {
    let word = word.to_lowercase();
    let has = |meaning: &str| {
        let meaning = meaning.to_lowercase();
        let is_word = |other: &str| word.len() > 2 && other == word;
        let initials = |phrase: &str| {
            let words = words(phrase);
            words.len() > 1 && words.iter().filter_map(|word| word.chars().next()).eq(word.chars())
        };
        let in_brackets = meaning.split('(').skip(1).filter_map(|rest| rest.split(')').next());
        words(&meaning).into_iter().any(is_word) || in_brackets.clone().any(initials)
    };
    known.filter(|(_, meaning)| has(meaning)).map(|(name, _)| name).collect()
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

/// Letters of a name that are compared.
const COMPARED: usize = 64;

/// Edit distance (insert, delete, replace, swap two neighbours), case ignored.
fn edits(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().take(COMPARED).collect();
    let b: Vec<char> = b.to_lowercase().chars().take(COMPARED).collect();
    // Distances of what is read of `a`, without and with its last letter, from each beginning of `b`.
    let (mut before, mut row) = (Vec::new(), (0..=b.len()).collect::<Vec<usize>>());
    for (i, &x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let distance = (row[j] + usize::from(x != y)).min(row[j + 1] + 1).min(next[j] + 1);
            let swaps = i > 0 && j > 0 && x == b[j - 1] && y == a[i - 1];
            next.push(if swaps { distance.min(before[j - 1] + 1) } else { distance });
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_only_when_it_is_near() {
        let known = ["hpcc", "dcqcn", "timely", "dctcp"];
        assert_eq!(nearest("hpc", known.into_iter()), Some("hpcc"));
        assert_eq!(nearest("dctp", known.into_iter()), Some("dctcp"));
        assert_eq!(nearest("bananas", known.into_iter()), None);
        assert_eq!(nearest("HPCC", known.into_iter()), Some("hpcc"));
    }

    #[test]
    fn how_near_a_name_has_to_be_depends_on_the_length_of_both() {
        for (found, known, is_near) in [
            ("mtu", "to", false),
            ("tcp", "ndp", false),
            ("mt", "mtu", true),
            ("dst", "dest", true),
            ("to", "tp", true),
            ("TO", "to", true),
            ("x", "y", false),
            ("link", "kind", false),
            ("knid", "kind", true),
            ("leafs", "leaves", true),
            ("ost", "hosts", true),
            ("window_validatoin", "window_validation", true),
            ("", "a", false),
        ] {
            assert_eq!(nearest(found, [known].into_iter()).is_some(), is_near, "{found} {known}");
        }
        // Two letters that are swapped are one edit.
        assert_eq!([("ab", "ba"), ("acb", "abc"), ("ca", "abc")].map(|(a, b)| edits(a, b)), [1, 1, 3]);
    }

    #[test]
    fn no_name_that_its_length_excludes_is_near() {
        let long = "a".repeat(70);
        let names = ["", "to", "tp", "kind", "knid", "hosts", "ost", "window_validation", &long[..50], &long];
        for found in names {
            for name in names {
                let is_near = edits(found, name) <= max_edits(found.chars().count(), name.chars().count());
                assert_eq!(nearest(found, [name].into_iter()).is_some(), is_near, "{found} {name}");
            }
        }
    }

    #[test]
    fn a_name_of_which_words_are_left_out_is_nearer_than_one_with_other_letters() {
        let known = ["kind", "fabric_link", "host_link", "hosts"];
        let key = |found| nearest_key(found, known.into_iter(), || None).unwrap_or_default();
        assert_eq!(["link", "Fabric"].map(key), ["host_link", "fabric_link"]);
        assert_eq!(["host", "kinds"].map(key), ["hosts", "kind"], "one letter is as near as a word");
        assert_eq!(["ost", "_"].map(key), ["hosts", ""]);
        let meant = |found| nearest_key(found, known.into_iter(), || Some("rate".into())).unwrap();
        assert_eq!(
            ["ost", "kinds", "link"].map(meant),
            ["rate", "kind", "host_link"],
            "meanings before two letters"
        );
        assert_eq!(nearest("fabric", known.into_iter()), None, "of names alone, letters count");
    }

    #[test]
    fn a_name_is_found_by_a_word_of_its_meaning_and_by_initials() {
        let known =
            [("tensor", "Ranks that share a layer (tensor parallel)."), ("layers", "Transformer layers.")];
        let found = |word| meant(word, known.into_iter());
        assert_eq!(found("TP"), ["tensor"]);
        assert_eq!(found("transformer"), ["layers"]);
        assert_eq!(found("tl"), Vec::<&str>::new(), "no brackets around these words");
        assert_eq!(found("a"), Vec::<&str>::new());
    }
}
