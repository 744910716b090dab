/* A child may use the mutexes that its thread held when it forked, though
 * others wait for them in the parent; and everything else afterwards. (glibc
 * itself refuses the recursive one: its owner is a thread number, and the
 * child has another.) */
#include "check.h"
#include <sys/wait.h>

enum { N = 4, WAITERS = 2 };
static pthread_mutex_t mutex[N], recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                       free_one = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static int flag;

static void *wait_for(void *m)
{
    CHECK(pthread_mutex_lock(m), 0);
    CHECK(pthread_mutex_unlock(m), 0);
    return NULL;
}

static void *wait_for_flag(void *unused)
{
    CHECK(pthread_mutex_lock(&cond_mutex), 0);
    while (!flag)
        CHECK(pthread_cond_wait(&cond, &cond_mutex), 0);
    CHECK(pthread_mutex_unlock(&cond_mutex), 0);
    return unused;
}

static void lock_all(void)
{
    for (int i = 0; i < N; i++)
        CHECK(pthread_mutex_lock(&mutex[i]), 0);
    CHECK(pthread_mutex_lock(&recursive), 0);
    CHECK(pthread_mutex_lock(&recursive), 0);
}

static void unlock_all(void)
{
    for (int i = 0; i < N; i++)
        CHECK(pthread_mutex_unlock(&mutex[i]), 0);
    CHECK(pthread_mutex_unlock(&recursive), 0);
    CHECK(pthread_mutex_unlock(&recursive), 0);
}

static void child(int depth);

static void fork_and_wait(int depth)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        child(depth);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0), pid);
    CHECK(status, 0);
}

static void child(int depth)
{
    alarm(20);
    unlock_all();
    lock_all();
    CHECK(pthread_mutex_trylock(&mutex[0]), EBUSY);
    pthread_t waiter[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        CHECK(pthread_create(&waiter[i], NULL, wait_for, &mutex[i]), 0);
    usleep(20000);
    if (depth > 0)
        fork_and_wait(depth - 1);
    unlock_all();
    for (int i = 0; i < WAITERS; i++)
        CHECK(pthread_join(waiter[i], NULL), 0);
    wait_for(&free_one);
    /* The condition variable's waiters stayed behind: this signal is for the
     * one that waits here. */
    flag = 0;
    pthread_t one;
    CHECK(pthread_create(&one, NULL, wait_for_flag, NULL), 0);
    usleep(20000);
    CHECK(pthread_mutex_lock(&cond_mutex), 0);
    flag = 1;
    CHECK(pthread_cond_signal(&cond), 0);
    CHECK(pthread_mutex_unlock(&cond_mutex), 0);
    CHECK(pthread_join(one, NULL), 0);
}

int main(void)
{
    alarm(60);
    pthread_t waiter[WAITERS], waiting;
    wait_for(&free_one);
    CHECK(pthread_create(&waiting, NULL, wait_for_flag, NULL), 0);
    for (int round = 0; round < 3; round++) {
        lock_all();
        for (int i = 0; i < WAITERS; i++)
            CHECK(pthread_create(&waiter[i], NULL, wait_for, &mutex[i]), 0);
        usleep(20000);
        fork_and_wait(1);
        unlock_all();
        for (int i = 0; i < WAITERS; i++)
            CHECK(pthread_join(waiter[i], NULL), 0);
    }
    CHECK(pthread_mutex_lock(&cond_mutex), 0);
    flag = 1;
    CHECK(pthread_cond_broadcast(&cond), 0);
    CHECK(pthread_mutex_unlock(&cond_mutex), 0);
    CHECK(pthread_join(waiting, NULL), 0);
    puts("forked");
    return 0;
}
