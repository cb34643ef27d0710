//! Whether two systems can be told apart by a few repeats each.
//!
//! Promises: one is called better only if its worst repeat is better than the best of the other. Three repeats on a shared machine carry no finer
//! statement than that.

use super::medians::Median;

/// Which way a figure is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    /// Rates.
    Higher,
    /// Lengths of time, and what something costs.
    Lower,
}

/// How we stand against another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every repeat of ours is better than every one of theirs.
    Ahead,
    /// Every repeat of ours is worse.
    Behind,
    /// The ranges overlap or touch.
    NotToldApart,
}

impl Better {
    /// Ours and theirs in the order in which the greater one of the first is good for us.
    fn for_us<T>(self, ours: T, theirs: T) -> (T, T) {
        match self {
            Self::Higher => (ours, theirs),
            Self::Lower => (theirs, ours),
        }
    }

    /// By ranges alone.
    pub(super) fn verdict(self, ours: Median, theirs: Median) -> Verdict {
        match self.for_us(ours, theirs) {
            (one, other) if one.least > other.most => Verdict::Ahead,
            (one, other) if one.most < other.least => Verdict::Behind,
            _ => Verdict::NotToldApart,
        }
    }

    /// How many times better our median is than theirs; below 1 it is worse. None if that would divide by nothing.
    pub(super) fn ratio(self, ours: Median, theirs: Median) -> Option<f64> {
        let (one, other) = self.for_us(ours.middle, theirs.middle);
        (other > 0.0).then(|| one / other)
    }

    /// Whether one median is better than another.
    pub(super) fn is_better(self, one: f64, other: f64) -> bool {
        let (one, other) = self.for_us(one, other);
        one > other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Median {
        Median::of(values.to_vec()).unwrap()
    }

    #[test]
    fn ranges_that_do_not_overlap_decide_and_the_direction_of_the_figure_counts() {
        let (slow, fast) = (of(&[1.0, 2.0, 3.0]), of(&[4.0, 5.0, 6.0]));
        assert_eq!(Better::Higher.verdict(fast, slow), Verdict::Ahead);
        assert_eq!(Better::Higher.verdict(slow, fast), Verdict::Behind);
        assert_eq!(Better::Lower.verdict(fast, slow), Verdict::Behind);
        assert_eq!(Better::Lower.verdict(slow, fast), Verdict::Ahead);
    }

    #[test]
    fn ranges_that_overlap_or_touch_are_not_told_apart_however_far_the_medians_are() {
        let (wide, high) = (of(&[1.0, 2.0, 50.0]), of(&[49.0, 60.0, 70.0]));
        let touching = of(&[50.0, 80.0, 90.0]);
        for better in [Better::Higher, Better::Lower] {
            assert_eq!(better.verdict(wide, high), Verdict::NotToldApart);
            assert_eq!(better.verdict(high, wide), Verdict::NotToldApart);
            assert_eq!(better.verdict(wide, touching), Verdict::NotToldApart);
        }
    }

    #[test]
    fn a_ratio_above_one_is_in_our_favour() {
        assert_eq!(Better::Higher.ratio(of(&[6.0]), of(&[3.0])), Some(2.0));
        assert_eq!(Better::Lower.ratio(of(&[6.0]), of(&[3.0])), Some(0.5));
        assert_eq!(Better::Lower.ratio(of(&[0.0]), of(&[3.0])), None);
    }
}
