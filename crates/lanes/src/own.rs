//! Values that each runtime has of its own.

use arc_swap::ArcSwap;
use tokio::runtime::Id;

/// One `T` for each runtime that asked for it. Meant for a handful of runtimes that live as long as
/// the process: none is ever taken out.
#[derive(Debug)]
pub struct Own<T>(ArcSwap<Vec<(Id, T)>>);

impl<T> Default for Own<T> {
    fn default() -> Self {
        Self(ArcSwap::default())
    }
}

impl<T: Clone> Own<T> {
    /// The value of `runtime`, if it has one.
    #[must_use]
    pub fn of(&self, runtime: Id) -> Option<T> {
        let all = self.0.load();
        all.iter().find(|(id, _)| *id == runtime).map(|(_, own)| own.clone())
    }

    /// The value of `runtime`, which is `new` if it had none. Of several that ask for the first time at
    /// once, all get the first one's.
    pub fn of_or(&self, runtime: Id, new: T) -> T {
        self.0.rcu(|all| {
            let mut all = Vec::clone(all);
            if all.iter().all(|(id, _)| *id != runtime) {
                all.push((runtime, new.clone()));
            }
            all
        });
        self.of(runtime).unwrap_or(new)
    }

    /// Number of runtimes with a value.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load().len()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use tokio::runtime::{Builder, Runtime};

    use super::*;

    fn runtime() -> Runtime {
        Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn each_runtime_has_its_own_and_keeps_it() {
        let one = runtime().handle().id();
        let other = runtime().handle().id();
        let own = Own::default();

        assert_eq!(own.of(one), None);
        assert_eq!(own.of_or(one, "first"), "first");
        assert_eq!(own.of_or(one, "second"), "first");
        assert_eq!(own.of_or(other, "third"), "third");

        assert_eq!((own.of(one), own.of(other)), (Some("first"), Some("third")));
        assert_eq!(own.count(), 2);
    }

    #[test]
    fn those_who_ask_at_once_are_given_the_same() {
        let own = Own::<Arc<usize>>::default();
        let id = runtime().handle().id();

        let given: Vec<Arc<usize>> = thread::scope(|scope| {
            let ask = |n| {
                scope.spawn({
                    let own = &own;
                    move || own.of_or(id, Arc::new(n))
                })
            };
            let asked: Vec<_> = (0..8).map(ask).collect();
            asked.into_iter().map(|given| given.join().unwrap()).collect()
        });

        let kept = own.of(id).unwrap();
        assert!(given.iter().all(|given| Arc::ptr_eq(given, &kept)));
    }
}
