/* opens LIBRARY: opens it again and again while other threads take locks. */
#include "check.h"
#include <dlfcn.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int stop;

static void *take(void *unused)
{
    for (int done = 0; !done;) {
        CHECK(pthread_mutex_lock(&mutex), 0);
        done = stop;
        CHECK(pthread_mutex_unlock(&mutex), 0);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    CHECK(argc, 2);
    CHECK(pthread_create(&thread, NULL, take, NULL), 0);
    for (int i = 0; i < 50; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fputs(dlerror(), stderr);
            return 1;
        }
        long (*count)(void) = (long (*)(void))dlsym(library, "plugin_count");
        CHECK(count(), 1001);
        CHECK(count(), 1002);
        CHECK(dlclose(library), 0);
    }
    CHECK(pthread_mutex_lock(&mutex), 0);
    stop = 1;
    CHECK(pthread_mutex_unlock(&mutex), 0);
    CHECK(pthread_join(thread, NULL), 0);
    puts("opened");
    return 0;
}
