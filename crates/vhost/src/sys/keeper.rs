//! A lock that is kept from one call to the next.

use parking_lot::Mutex;
use std::sync::Arc;

/// A mutex in the hands of one who may keep it locked between calls.
///
/// A guard that owns its mutex would do, but each one counts itself in and out, two locked instructions more for each batch.
#[derive(Debug)]
pub(crate) struct Keeper<T> {
    mutex: Arc<Mutex<T>>,
    /// It is locked, by us.
    keeps: bool,
}

impl<T> Keeper<T> {
    pub(crate) fn new(mutex: Arc<Mutex<T>>) -> Self {
        Self { mutex, keeps: false }
    }

    /// Locks it, if it is not kept already; it stays locked until [`Keeper::release`].
    #[inline]
    pub(crate) fn keep(&mut self) -> &mut T {
        if !self.keeps {
            std::mem::forget(self.mutex.lock());
            self.keeps = true;
        }
        // SAFETY: it was locked and its guard forgotten, so nobody else gets at its contents before `release`, which takes `&mut self` as
        // long as this reference lasts.
        unsafe { &mut *self.mutex.data_ptr() }
    }

    /// What is in it, if it is kept.
    #[inline]
    pub(crate) fn kept(&mut self) -> Option<&mut T> {
        self.keeps.then(|| self.keep())
    }

    /// Lets go of it, if it is kept.
    #[inline]
    pub(crate) fn release(&mut self) {
        if std::mem::take(&mut self.keeps) {
            // SAFETY: it was locked here and its guard forgotten; a lock may be let go of by another thread than took it (`parking_lot`'s feature `send_guard`).
            unsafe { self.mutex.force_unlock() };
        }
    }
}

impl<T> Drop for Keeper<T> {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_locked_until_it_is_released_or_its_keeper_goes() {
        let mutex = Arc::new(Mutex::new(7));
        let mut keeper = Keeper::new(Arc::clone(&mutex));
        assert!(keeper.kept().is_none() && !mutex.is_locked());
        *keeper.keep() += 1;
        *keeper.keep() += 1;
        assert!(mutex.is_locked());
        assert_eq!(keeper.kept().copied(), Some(9));
        keeper.release();
        keeper.release();
        assert_eq!(mutex.try_lock().as_deref().copied(), Some(9));
        std::thread::spawn({
            keeper.keep();
            move || drop(keeper)
        })
        .join()
        .unwrap();
        assert!(!mutex.is_locked(), "let go of by another thread");
    }

    #[test]
    fn others_wait_for_it() {
        let mutex = Arc::new(Mutex::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let mut keeper = Keeper::new(Arc::clone(&mutex));
                scope.spawn(move || {
                    for _ in 0..1000 {
                        let before = *keeper.keep();
                        std::hint::spin_loop();
                        *keeper.keep() = before + 1;
                        keeper.release();
                    }
                });
            }
        });
        assert_eq!(*mutex.lock(), 2000);
    }
}
