//! Programs whose change of time is predicted and measured: where their sources come from,
//! how they are built, and what each of them does for some tenths of a second. A program is
//! a row; nothing here knows what a layout is.

/// A program that is built from its sources.
pub(crate) struct Program {
    /// Its name in tables.
    pub(crate) name: &'static str,
    /// The Debian source package, or the crate whose sources hold it.
    pub(crate) source: Source,
    /// A shell script in the folder of its sources. `$FLAGS` are options of compiler and
    /// linker, `$OUT` the program that it must leave, `$HERE` the folder of the files beside
    /// this one.
    pub(crate) build: &'static str,
    /// Its arguments; `{inputs}` is the folder of the inputs.
    pub(crate) arguments: &'static str,
}

/// Says where the sources of a program come from.
pub(crate) enum Source {
    /// `apt-get source` of this package.
    Debian(&'static str),
    /// The sources of a crate in Cargo's registry, and the folder within.
    Crate(&'static str, &'static str),
}

/// Lists the programs that are built in two layouts and measured.
pub(crate) const PROGRAMS: [Program; 11] = [
    Program {
        name: "lua",
        source: Source::Debian("lua5.4"),
        build: "cd src && gcc $FLAGS -DLUA_USE_POSIX -o $OUT $(ls *.c | grep -v luac.c) -lm",
        arguments: "{inputs}/script.lua",
    },
    Program {
        name: "sqlite",
        source: Source::Crate("libsqlite3-sys", "sqlite3"),
        build: "gcc $FLAGS -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -I. -o $OUT \
                $HERE/statements.c sqlite3.c -lm",
        arguments: "100000",
    },
    Program {
        name: "tcc",
        source: Source::Debian("tcc"),
        build: "[ -e config.h ] || ./configure > configure.log; \
                gcc $FLAGS -DONE_SOURCE=1 -DTCC_TARGET_X86_64 -I. -o $OUT tcc.c -ldl -lm -lpthread",
        arguments: "-nostdinc -c -o {inputs}/functions.o {inputs}/functions.c",
    },
    Program {
        name: "jq",
        source: Source::Debian("jq"),
        build: "sed -e 's/\\\\/\\\\\\\\/g' -e 's/\"/\\\\\"/g' -e 's/^/\"/' -e 's/$/\\\\n\"/' \
                src/builtin.jq > src/builtin.inc; echo '#define JQ_VERSION \"1\"' > src/version.h; \
                gcc $FLAGS -D_GNU_SOURCE -DIEEE_8087=1 -DHAVE_MEMMEM -DHAVE_ISATTY -DHAVE_TIMEGM \
                -DHAVE_GMTIME_R -DHAVE_STRPTIME -DHAVE_STRFTIME -DHAVE_SNPRINTF -DHAVE_PTHREAD \
                -DHAVE_TM_TM_GMT_OFF -DHAVE_SETLOCALE -I. -Isrc -o $OUT \
                $(ls src/*.c | grep -v inject_errors) -lm -lpthread",
        arguments: "-c {query} {inputs}/rows.json",
    },
    Program {
        name: "mawk",
        source: Source::Debian("mawk"),
        build: "[ -e config.h ] || ./configure > configure.log; make clean > make.log; \
                make mawk CFLAGS=\"$FLAGS\" >> make.log 2>&1; cp mawk $OUT",
        arguments: "-f {inputs}/words.awk {inputs}/text {inputs}/text",
    },
    Program {
        name: "xmlwf",
        source: Source::Debian("expat"),
        build: "cd expat && gcc $FLAGS -DXML_POOR_ENTROPY -DXML_DTD -DXML_NS -DXML_GE=1 \
                -DXML_CONTEXT_BYTES=1024 -DBYTEORDER=1234 -DHAVE_UNISTD_H -DHAVE_FCNTL_H -DHAVE_MMAP \
                -Ilib -Ixmlwf -o $OUT lib/xmlparse.c lib/xmlrole.c lib/xmltok.c xmlwf/xmlwf.c \
                xmlwf/xmlfile.c xmlwf/codepage.c xmlwf/unixfilemap.c",
        arguments: "-n {inputs}/tree.xml {inputs}/tree.xml {inputs}/tree.xml {inputs}/tree.xml \
                    {inputs}/tree.xml {inputs}/tree.xml {inputs}/tree.xml {inputs}/tree.xml",
    },
    Program {
        name: "nginx's parser",
        source: Source::Debian("nginx"),
        build: "[ -e objs/ngx_auto_config.h ] || ./configure --without-http_rewrite_module \
                --without-http_gzip_module --without-pcre > configure.log; \
                gcc $FLAGS -Isrc/core -Isrc/event -Isrc/event/modules -Isrc/os/unix -Isrc/http \
                -Isrc/http/modules -Iobjs -o $OUT $HERE/requests.c src/http/ngx_http_parse.c \
                src/core/ngx_string.c src/core/ngx_palloc.c src/os/unix/ngx_alloc.c -Wl,--gc-sections",
        arguments: "1200000",
    },
    Program {
        name: "bzip2",
        source: Source::Debian("bzip2"),
        build: "gcc $FLAGS -D_FILE_OFFSET_BITS=64 -o $OUT bzip2.c blocksort.c huffman.c crctable.c \
                randtable.c compress.c decompress.c bzlib.c",
        arguments: "-c {inputs}/text",
    },
    Program {
        name: "minigzip",
        source: Source::Debian("zlib"),
        build: "gcc $FLAGS -DHAVE_UNISTD_H -I. -o $OUT test/minigzip.c adler32.c crc32.c deflate.c \
                inffast.c inflate.c inftrees.c trees.c zutil.c gzclose.c gzlib.c gzread.c gzwrite.c \
                compress.c uncompr.c infback.c",
        arguments: "-c {inputs}/long",
    },
    Program {
        name: "zstd",
        source: Source::Debian("libzstd"),
        build: "gcc $FLAGS -DZSTD_DISABLE_ASM -DXXH_NAMESPACE=ZSTD_ -DZSTD_NODICT -DZSTD_NOBENCH \
                -DZSTD_NOTRACE -Ilib -Ilib/common -o $OUT lib/common/*.c lib/compress/*.c \
                lib/decompress/*.c programs/zstdcli.c programs/util.c programs/timefn.c \
                programs/fileio.c programs/fileio_asyncio.c -lpthread",
        arguments: "-q -f -9 --single-thread -c {inputs}/long",
    },
    Program {
        name: "xz",
        source: Source::Debian("xz-utils"),
        build: "[ -e Makefile ] || ./configure --disable-shared --disable-nls --disable-doc \
                --disable-threads > configure.log; make -s -C src/liblzma clean all \
                CFLAGS=\"$FLAGS\" > make.log 2>&1; make -s -C src/xz clean all CFLAGS=\"$FLAGS\" \
                >> make.log 2>&1; cp src/xz/xz $OUT",
        arguments: "-2 -k -c {inputs}/short",
    },
];
