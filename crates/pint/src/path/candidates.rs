//! The ids that one hop may have.

/// Ids that fit without a list of their own: most hops have fewer after their first digest of 8 bits.
const FEW: usize = 7;

/// Ids of one hop, as ascending indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Candidates {
    /// Any: nothing has been struck out.
    All,
    One(u32),
    Few {
        count: u8,
        ids: [u32; FEW],
    },
    Many(Vec<u32>),
}

/// What striking out has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// The number stays the same.
    Same,
    Fewer,
    /// One, of several.
    Known,
    /// No id: what was taken in contradicts itself.
    Nothing,
}

impl Candidates {
    /// The ids; None for any.
    pub fn listed(&self) -> Option<&[u32]> {
        match self {
            Candidates::All => None,
            Candidates::One(id) => Some(std::slice::from_ref(id)),
            Candidates::Few { count, ids } => Some(&ids[..usize::from(*count)]),
            Candidates::Many(list) => Some(list),
        }
    }

    /// Bytes beyond its own size.
    pub fn bytes(&self) -> usize {
        match self {
            Candidates::Many(list) => list.capacity() * size_of::<u32>(),
            _ => 0,
        }
    }

    /// Strikes out those of `total` ids that `stays` is false for.
    #[inline]
    pub fn retain(&mut self, total: usize, stays: impl Fn(u32) -> bool) -> Left {
        let left = match self {
            Candidates::One(id) => return if stays(*id) { Left::Same } else { Left::Nothing },
            Candidates::Few { count, ids } => {
                let before = usize::from(*count);
                let left = compact(&mut ids[..before], stays);
                if left == before {
                    return Left::Same;
                }
                *count = left as u8;
                left
            }
            Candidates::Many(list) => {
                let (before, left) = (list.len(), compact(list, stays));
                if left == before {
                    return Left::Same;
                }
                list.truncate(left);
                if left <= FEW {
                    let list = std::mem::take(list);
                    *self = Candidates::of(list.iter().copied());
                }
                left
            }
            Candidates::All => {
                // 64 tests that do not wait for each other, then those that passed.
                let found = (0..total as u32).step_by(64).flat_map(|first| {
                    let tests = first..(total as u32).min(first + 64);
                    bits(tests.fold(0, |passed, id| passed | u64::from(stays(id)) << (id - first)), first)
                });
                return self.narrow(total, found);
            }
        };
        self.settle(left)
    }

    /// Of any of `total` ids, these (ascending) stay.
    pub fn narrow(&mut self, total: usize, found: impl Iterator<Item = u32>) -> Left {
        let list = Candidates::of(found);
        let left = list.listed().map_or(0, <[u32]>::len);
        // A single id that may be any is not known before something is learnt of it.
        if left == total && total > 1 {
            return Left::Same;
        }
        *self = list;
        self.settle(left)
    }

    fn settle(&mut self, left: usize) -> Left {
        match (left, self.listed()) {
            (0, _) => Left::Nothing,
            (1, Some(&[id])) => {
                *self = Candidates::One(id);
                Left::Known
            }
            _ => Left::Fewer,
        }
    }

    /// Of a list; never `All` or `One`.
    fn of(found: impl Iterator<Item = u32>) -> Candidates {
        let (mut count, mut ids, mut many) = (0, [0; FEW], Vec::new());
        for id in found {
            if count < FEW {
                ids[count] = id;
            } else {
                if count == FEW {
                    many.reserve(4 * FEW);
                    many.extend_from_slice(&ids);
                }
                many.push(id);
            }
            count += 1;
        }
        if count <= FEW { Candidates::Few { count: count as u8, ids } } else { Candidates::Many(many) }
    }
}

/// Moves the ids that stay to the front; how many. No branch on a test that is a coin toss.
#[inline]
fn compact(ids: &mut [u32], stays: impl Fn(u32) -> bool) -> usize {
    let mut left = 0;
    for place in 0..ids.len() {
        let id = ids[place];
        ids[left] = id;
        left += usize::from(stays(id));
    }
    left
}

/// The set bits of a word, counted from `first`.
pub(super) fn bits(mut word: u64, first: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.checked_sub(1)?;
        Some(first + bit)
    })
}

#[cfg(test)]
mod tests;
