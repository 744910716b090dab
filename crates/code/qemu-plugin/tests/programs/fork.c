/* A child that runs 2 * 2,000,000 instructions and ends before its parent,
 * which runs few and has changed its folder. */
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	if (chdir("/"))
		return 1;
	if (fork() == 0) {
		asm volatile("mov $2000000, %%ecx\n1: dec %%ecx\n jnz 1b" ::: "ecx");
		return 0;
	}
	return wait(NULL) < 0;
}
