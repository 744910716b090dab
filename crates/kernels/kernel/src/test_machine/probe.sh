# Prints what this system is, one "KEY VALUE" per line. It changes nothing, and
# needs only sh, cat, dd, grep, uname, readlink, head, tail and tr.
say() { [ -n "$2" ] && echo "$1 $2"; }
first() { [ -r "$1" ] && head -n 1 "$1"; }
say boot-id "$(first /proc/sys/kernel/random/boot_id)"
say cmdline "$(first /proc/cmdline)"
say release "$(uname -r)"
say machine "$(uname -m)"
say user "$(id -u 2>/dev/null)"
say cpus "$(grep -c '^processor' /proc/cpuinfo)"
say processor "$(grep -m 1 '^model name' /proc/cpuinfo)"
say microcode "$(grep -m 1 '^microcode' /proc/cpuinfo)"
say memory "$(grep '^MemAvailable' /proc/meminfo)"
say kexec-disabled "$(first /proc/sys/kernel/kexec_load_disabled)"
say kexec-loaded "$(first /sys/kernel/kexec_loaded)"
say lockdown "$(first /sys/kernel/security/lockdown)"
say nmi-watchdog "$(first /proc/sys/kernel/nmi_watchdog)"
say governor "$(first /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor)"
say no-turbo "$(first /sys/devices/system/cpu/intel_pstate/no_turbo)"
say boost "$(first /sys/devices/system/cpu/cpufreq/boost)"
say smt "$(first /sys/devices/system/cpu/smt/active)"
say load "$(first /proc/loadavg)"
say counters "$([ -e /sys/bus/event_source/devices/cpu ] && echo yes)"
say pstore "$([ -d /sys/fs/pstore ] && echo yes)"
say watchdog "$([ -e /dev/watchdog ] && echo yes)"
say systemd "$([ -d /run/systemd/system ] && echo yes)"
say sha256sum "$(command -v sha256sum)"
say users "$(who 2>/dev/null | wc -l)"
say connection "$SSH_CONNECTION"
# A file system in memory from which a program can be started.
for folder in /dev/shm /run /tmp; do
	if grep " $folder tmpfs " /proc/mounts | grep -qv noexec && [ -w $folder ]; then
		say folder $folder
		break
	fi
done
while read -r interface destination gateway flags a b c mask rest; do
	say route "$interface $destination $gateway $mask"
done </proc/net/route
for path in /sys/class/net/*; do
	[ -e "$path/device" ] || continue
	say card "${path##*/} $(first "$path/address")"
	# The driver of the card, and of the buses that it is on.
	device=$(readlink -f "$path/device")
	while [ -n "$device" ] && [ "$device" != /sys/devices ]; do
		module=$(readlink -f "$device/driver/module" 2>/dev/null)
		[ -n "$module" ] && say driver "${path##*/} ${module##*/}"
		device=${device%/*}
	done
done
for path in /sys/block/*; do
	disk=${path##*/} use=free serial=$(first "$path/serial")
	[ -n "$serial" ] || serial=$(first "$path/device/serial")
	[ -n "$serial" ] || [ ! -r "$path/device/vpd_pg80" ] ||
		serial=$(tail -c +5 "$path/device/vpd_pg80" | tr -d '\000')
	[ -n "$serial" ] || continue
	grep -q "^/dev/$disk[p0-9]* " /proc/mounts /proc/swaps && use=mounted
	for part in "$path"/*/partition; do [ -e "$part" ] && use=partitions; done
	for held in "$path"/holders/*; do [ -e "$held" ] && use=held; done
	sectors=$(first "$path/size")
	say disk "$disk $use $sectors $serial"
	# What fs-mark would look at before it overwrites a disk: the first and the last MiB.
	if [ $use = free ] && [ -r "/dev/$disk" ] && [ "$sectors" -ge 4096 ]; then
		part() { dd if="/dev/$disk" bs="$1" skip="$2" count="$3" 2>/dev/null | tr -d '\000'; }
		holds=data
		if [ "$(part 4 0 1)" = XFSB ] && [ "$(part 1 108 12)" = locklab ]; then
			holds=ours
		elif [ -z "$(part 512 0 2048 | head -c 1)" ] &&
			[ -z "$(part 512 $((sectors - 2048)) 2048 | head -c 1)" ]; then
			holds=nothing
		fi
		say disk-holds "$disk $holds"
	fi
	device=$(readlink -f "$path/device")
	while [ -n "$device" ] && [ "$device" != /sys/devices ]; do
		module=$(readlink -f "$device/driver/module" 2>/dev/null)
		[ -n "$module" ] && say disk-driver "$disk ${module##*/}"
		device=${device%/*}
	done
done
say end yes
