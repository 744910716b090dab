#!/bin/sh
# Stands for ssh and for the machine behind it in tests of states: answers as
# its own system or as a measured kernel does, and what `next` and `run` say
# happens when a kernel is started and when a workload runs. STATE is replaced
# by the folder of the test.
state=STATE
for last; do :; done
to=home
case "$*" in *HostKeyAlias=locklab*) to=kernel ;; esac
place=$(cat $state/place)
echo "$to $last" >>$state/log
arrive() {
	number=$(($(cat $state/count) + 1))
	echo $number >$state/count
	echo "$1" >$state/place
}
# A kernel that boots does not answer, until it was asked three times to restart.
if [ "$place" = booting ] && [ $to = kernel ]; then
	[ "$last" = reboot ] || exec sleep 1000
	echo . >>$state/calls
	[ $(wc -l <$state/calls) -lt 3 ] || arrive kernel
fi
[ "$to" = "$place" ] || { echo 'Connection refused' >&2; exit 255; }
boot_id=$place-$(cat $state/count)
case "$to $last" in
'home exec sh -s') sed "s/home-1/$boot_id/" $state/probe ;;
'home cat /proc/sys/kernel/random/boot_id') echo $boot_id ;;
'home umask'*) cat >$state/test-machine ;;
'home sha256sum '*) sha256sum <$state/${last##*/} ;;
'home chmod '*) ;;
*'/test-machine put '* | 'kernel put '*) cat >$state/${last##* } ;;
'home '*'/test-machine load' | 'kernel load')
	[ ! -e $state/refuse ] || { cat $state/refuse >&2; exit 1; } ;;
*'/test-machine unload; rm '*) ;;
'home '*'/test-machine exec' | 'kernel exec')
	case $(cat $state/next) in
	up) arrive kernel ;;
	panic) arrive home ;;
	hang) arrive gone ;;
	slow) arrive booting ;;
	wrong) echo 'locklab.token=another' >$state/cmdline; arrive kernel ;;
	late) arrive kernel; exec sleep 1000 ;;
	stay) ;;
	esac ;;
'home cat /sys/fs/pstore/'*) echo 'Kernel panic - not syncing: from pstore' ;;
'kernel sum '*) sha256sum <$state/${last##* } ;;
'kernel facts')
	echo "boot-id $boot_id"
	echo "cmdline $(cat $state/cmdline)"
	echo 'release 6.1.0'
	echo "version $(cat $state/version)" ;;
'kernel run '*)
	printf 'unit call\nwork 10\nelapsed-ns 50\ndone\n' >$state/results
	case $(cat $state/run) in
	ok) cat $state/results ;;
	lost) exit 255 ;;
	panic) arrive home; exit 255 ;;
	hang) arrive gone; exit 255 ;;
	fail) echo 'locklab: no such plan' >&2; exit 1 ;;
	slow) touch $state/running; exec sleep 1000 ;;
	esac ;;
'kernel results '*) cat $state/results ;;
'kernel reboot')
	if [ -e $state/stuck ]; then arrive gone; else arrive home; fi ;;
*) echo "locklab: the test knows no '$last'" >&2; exit 1 ;;
esac
