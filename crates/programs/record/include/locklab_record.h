/* What a C or C++ program says of locks of its own, for 'locklab record':
 *
 *     void my_lock(struct my_lock *lock) {
 *         if (my_try_lock(lock)) { LOCKLAB_TOOK(lock); return; }
 *         LOCKLAB_ACQUIRE(lock);      // from here on it waits
 *         ...
 *         LOCKLAB_ACQUIRED(lock);     // it has the lock; LOCKLAB_REFUSED(lock): it gave up
 *     }
 *     void my_unlock(struct my_lock *lock) {
 *         LOCKLAB_RELEASE(lock);      // before the release
 *         ...
 *         LOCKLAB_RELEASED(lock);     // after it, with whatever it wakes
 *     }
 *
 * A lock is known by its address. The _SHARED forms are for readers. Without the recorder a
 * macro is a load and a branch; with LOCKLAB_NO_RECORD defined it is nothing. A program that
 * is linked statically cannot be recorded.
 *
 * MIT OR Apache-2.0. */
#ifndef LOCKLAB_RECORD_H
#define LOCKLAB_RECORD_H

#if defined(LOCKLAB_NO_RECORD) || !defined(__linux__)
#define LOCKLAB_IF_LOADED(function, call) ((void)0)
#else
#ifdef __cplusplus
extern "C" {
#endif
__attribute__((weak)) void locklab_record_asks(const void *lock, int shared);
__attribute__((weak)) void locklab_record_took(const void *lock, int shared);
__attribute__((weak)) void locklab_record_answered(int got);
__attribute__((weak)) void locklab_record_releases(const void *lock);
__attribute__((weak)) void locklab_record_released(void);
#ifdef __cplusplus
}
#endif
#define LOCKLAB_IF_LOADED(function, call) \
    do { \
        if (function) \
            call; \
    } while (0)
#endif

#define LOCKLAB_ACQUIRE(lock) LOCKLAB_IF_LOADED(locklab_record_asks, locklab_record_asks((lock), 0))
#define LOCKLAB_ACQUIRE_SHARED(lock) LOCKLAB_IF_LOADED(locklab_record_asks, locklab_record_asks((lock), 1))
#define LOCKLAB_ACQUIRED(lock) LOCKLAB_IF_LOADED(locklab_record_answered, locklab_record_answered(1))
#define LOCKLAB_REFUSED(lock) LOCKLAB_IF_LOADED(locklab_record_answered, locklab_record_answered(0))
#define LOCKLAB_TOOK(lock) LOCKLAB_IF_LOADED(locklab_record_took, locklab_record_took((lock), 0))
#define LOCKLAB_TOOK_SHARED(lock) LOCKLAB_IF_LOADED(locklab_record_took, locklab_record_took((lock), 1))
#define LOCKLAB_RELEASE(lock) LOCKLAB_IF_LOADED(locklab_record_releases, locklab_record_releases(lock))
#define LOCKLAB_RELEASED(lock) LOCKLAB_IF_LOADED(locklab_record_released, locklab_record_released())

#endif
