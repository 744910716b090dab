/* holds: a semaphore, a barrier, what is done once, and a lock of readers. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

static sem_t ready;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int made, data;

static void make(void) { made++; }

static void *work(void *unused)
{
	pthread_once(&once, make);
	assert(made == 1);
	sem_wait(&ready);
	pthread_rwlock_rdlock(&lock);
	assert(data == 7);
	pthread_rwlock_unlock(&lock);
	pthread_barrier_wait(&barrier);
	pthread_exit(unused);
}

int main(void)
{
	pthread_t thread;
	sem_init(&ready, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, work, &data);
	pthread_once(&once, make);
	pthread_rwlock_wrlock(&lock);
	data = 7;
	pthread_rwlock_unlock(&lock);
	sem_post(&ready);
	pthread_barrier_wait(&barrier);
	void *result;
	pthread_join(thread, &result);
	assert(result == &data);
}
