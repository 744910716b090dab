#!/bin/sh
# Makes the disk of the stand-in for a test machine: a small system of its own,
# which boots from firmware, has ssh and nothing else, and keeps nothing.
#
#   disk.sh KERNEL MODULES AUTHORIZED_KEYS DISK [CONFIG]
#
# CONFIG is the configuration that the system says it has.
# It needs busybox-static, dropbear-bin, syslinux, mtools and dosfstools. It
# must not need root: the disk is written by mtools, never mounted.
set -e
kernel=$1 modules=$2 keys=$3 disk=$4 config=$5
root=$disk.root
rm -rf "$root" "$disk"
mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/run" "$root/tmp" \
	"$root/etc/dropbear" "$root/root/.ssh" "$root/usr/sbin" "$root/modules"
cp /bin/busybox "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
cp /usr/sbin/dropbear "$root/usr/sbin/"
ldd /usr/sbin/dropbear | grep -o '/[^ ]*' | while read -r library; do
	mkdir -p "$root/$(dirname "$library")"
	cp -L "$library" "$root/$library"
done
dropbearkey -t ed25519 -f "$root/etc/dropbear/key" >/dev/null 2>&1
cp "$keys" "$root/root/.ssh/authorized_keys"
chmod 700 "$root/root" "$root/root/.ssh"
echo 'root:x:0:0::/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
: >"$root/etc/modules"
if [ -n "$config" ]; then
	mkdir "$root/boot"
	cp "$config" "$root/boot/config-${modules##*/}"
fi
for module in drivers/virtio/virtio_ring drivers/virtio/virtio \
	drivers/virtio/virtio_pci_legacy_dev drivers/virtio/virtio_pci_modern_dev \
	drivers/virtio/virtio_pci net/core/failover drivers/net/net_failover \
	drivers/net/virtio_net drivers/block/virtio_blk; do
	# The Debian kernel for clouds has them compressed from 6.12 on.
	plain=$modules/kernel/$module.ko
	if [ -f "$plain" ]; then
		cp "$plain" "$root/modules/"
	elif [ -f "$plain.xz" ]; then
		xz -dc "$plain.xz" >"$root/modules/${module##*/}.ko"
	else
		continue
	fi
	echo "${module##*/}" >>"$root/etc/modules"
done
cat >"$root/init" <<'INIT'
#!/bin/sh
/bin/busybox --install -s /bin
mount -t devtmpfs none /dev
mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /run
mount -t tmpfs none /tmp
while read -r module; do insmod "/modules/$module.ko"; done </etc/modules
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
echo 'stand-in: at home' >/dev/kmsg
while :; do dropbear -F -E -s -j -k -W 1000000 -r /etc/dropbear/key -p 22; done
INIT
chmod 755 "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc -R 0:0 2>/dev/null | gzip -1) >"$disk.initramfs"
truncate -s 64M "$disk"
mkfs.vfat "$disk" >/dev/null
mcopy -i "$disk" "$kernel" ::/kernel
mcopy -i "$disk" "$disk.initramfs" ::/initrd
cat >"$disk.cfg" <<'CFG'
DEFAULT home
LABEL home
LINUX /kernel
INITRD /initrd
APPEND console=ttyS0 panic=5 quiet no_timer_check
CFG
mcopy -i "$disk" "$disk.cfg" ::/syslinux.cfg
syslinux --install "$disk"
