/* As otel_bounded.c, but without a pause between the tries. Expected: exclusion FAILS;
 * -DFIXED holds. */
#include <locklab_lock.h>
#include <stdatomic.h>
struct s { _Atomic int f; };
LOCKLAB_LOCK(bounded_without_pause, struct s, lab_no_context);
void lab_lock(void *lock, void *ctx)
{
	struct s *l = lock; int i; (void)ctx;
#ifdef FIXED
	for (;;)
#endif
	for (i = 0; i < 50; i++)
		if (!atomic_exchange_explicit(&l->f, 1, memory_order_acquire))
			return;
}
void lab_unlock(void *lock, void *ctx) { (void)ctx; atomic_store_explicit(&((struct s *)lock)->f, 0, memory_order_release); }
