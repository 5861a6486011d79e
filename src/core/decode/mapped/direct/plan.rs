//! Plans: the places of a shape, looked up once in a schema, so that no names are compared for each record.

use std::sync::OnceLock;

/// Plans of a schema, by the shapes that read it. Most schemas are read by one shape.
#[derive(Debug)]
pub(in super::super::super) struct Plans<P>(OnceLock<Box<KnownPlan<P>>>);

#[derive(Debug)]
struct KnownPlan<P> {
    shape: u64,
    /// `None` if the shape has no fast path through this schema.
    plan: Option<P>,
    next: Plans<P>,
}

/// Bound on the shapes with plans for one schema. Further ones read it by their paths.
const MAX_PLANS: usize = 16;

impl<P> Plans<P> {
    /// Returns the plan of a shape, which is made once.
    #[inline(always)]
    pub fn of_shape(&self, shape: u64, make: impl Fn() -> Option<P>) -> Option<&P> {
        match self.0.get() {
            Some(known) if known.shape == shape => known.plan.as_ref(),
            _ => self.search(shape, &make),
        }
    }

    #[inline(never)]
    fn search(&self, shape: u64, make: &dyn Fn() -> Option<P>) -> Option<&P> {
        let mut plans = self;
        for _ in 0..MAX_PLANS {
            let known = plans.0.get_or_init(|| {
                Box::new(KnownPlan {
                    shape,
                    plan: make(),
                    next: Plans::default(),
                })
            });
            if known.shape == shape {
                return known.plan.as_ref();
            }
            plans = &known.next;
        }
        None
    }
}

impl<P> Default for Plans<P> {
    fn default() -> Self {
        Plans(OnceLock::new())
    }
}
