# atmiq - durable transactional queues behind the ATMI calls.  GNU make.
#
#   make            everything, into build/plain/tuxdir (a TUXDIR: bin lib include udataobj share/man apps)
#   make deps       install the Debian packages that build and tests need; nothing when they are there
#   make demo       the story of a message, with numbers          make check        all tests but the long ones
#   make lint       analysers and manual pages                    make check-long   the long ones too
#   make bench      figures                                       make crash        kill -9 runs with an oracle
#   make fuzz       libFuzzer on every decoder and reader         make soak         fill and drain for half an hour
#   make install PREFIX=/opt/atmiq
#   make SAN=address,undefined check        make SAN=thread check
#
# V=1 shows the commands.  CHECK="test_common_wire story_idioms" runs a choice of the tests.

VERSION      := 0.1.0
comma        := ,
B            ?= build/$(or $(subst $(comma),-,$(SAN)),plain)
PREFIX       ?= /opt/atmiq
JOBS         ?= $(shell nproc)
Q            := $(if $(V),,@)
CC           ?= gcc
OPT          ?= -O2
SANFLAGS     := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
WARN         := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla
CFLAGS       ?= $(OPT) -g
ALL_CFLAGS    = -std=gnu11 -D_GNU_SOURCE -fPIC -pthread -fvisibility=hidden $(WARN) $(CFLAGS) $(SANFLAGS)

# Who may include whom: left uses right, never back.
USES_common     :=
USES_console    :=
USES_ubbconfig  := common
USES_qspace     := common
USES_libatmiq   := ubbconfig common
USES_bbl        := console ubbconfig common
USES_tmrq       := ubbconfig common
USES_tmqueue    := qspace ubbconfig common
USES_qmadmin    := console qspace ubbconfig common
USES_tmqforward := libatmiq/ext ubbconfig common
USES_bench      := qspace common

# Each outside library has one home.
SYS_common    :=
SYS_ubbconfig := -lconfig
SYS_qspace    := -ldb-5.3
SYS_console   := -ledit

FOLDERS  := common console ubbconfig qspace libatmiq bbl tmrq tmqueue tmqforward qmadmin

# Programs, and the file that holds main; the rest of a folder is its library.
MAIN_tmloadcf    := ubbconfig/tmloadcf.c
MAIN_tmunloadcf  := ubbconfig/tmunloadcf.c
MAIN_BBL         := bbl/main.c
MAIN_tmboot      := bbl/tmboot.c
MAIN_tmshutdown  := bbl/tmshutdown.c
MAIN_tmadmin     := bbl/tmadmin.c
MAIN_tmipcrm     := bbl/tmipcrm.c
MAIN_TMRQ        := tmrq/main.c
MAIN_TMQUEUE     := tmqueue/main.c
MAIN_TMQFORWARD  := tmqforward/main.c
MAIN_qmadmin     := qmadmin/main.c
MAIN_buildserver := libatmiq/buildserver.c
MAIN_buildclient := libatmiq/buildclient.c
PROGRAMS := tmloadcf tmunloadcf BBL tmboot tmshutdown tmadmin tmipcrm TMRQ TMQUEUE TMQFORWARD qmadmin buildserver buildclient
MAINS    := $(foreach p,$(PROGRAMS),$(MAIN_$(p)))

T        := $(B)/tuxdir
srcs      = $(filter-out $(MAINS),$(wildcard $(1)/*.c))
objs      = $(patsubst %.c,$(B)/obj/%.o,$(1))
lib       = $(B)/lib/lib$(1).a
folder_of = $(firstword $(subst /, ,$(1)))
# The libraries of a folder and of what it uses, in link order.
closure   = $(1) $(filter $(FOLDERS),$(USES_$(1)))
libs_of   = $(foreach f,$(call closure,$(1)),$(call lib,$(f)))
sys_of    = $(foreach f,$(call closure,$(1)),$(SYS_$(f)))

BINS     := $(PROGRAMS:%=$(T)/bin/%)
HEADERS  := $(patsubst libatmiq/include/%,$(T)/include/%,$(wildcard libatmiq/include/*.h))
PAGES    := $(wildcard man/*.[1-8])
# Every name that old link lines have; all are the same library.
SONAMES  := $(patsubst %,lib%.so,atmiq tux buft tmib qm fml fml32 engine wsc)
SHARED   := $(T)/lib/libatmiq.so.1
RM_FILE  := $(T)/udataobj/RM

SAMPLE   := $(patsubst examples/%,$(T)/apps/%,$(wildcard examples/qsample/*))
UNITS    := $(patsubst examples/%,$(T)/share/%,$(wildcard examples/systemd/*))

.PHONY: show-uses all deps deps-lint demo check check-long crash soak bench lint fuzz install clean
all: $(SHARED) $(SONAMES:%=$(T)/lib/%) $(HEADERS) $(RM_FILE) $(BINS) $(foreach p,TMQUEUE TMQFORWARD,$(T)/lib/$(p).o $(T)/lib/$(p).so) $(PAGES:%=$(B)/%.stamp) $(SAMPLE) $(UNITS)

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -Ilibatmiq/include -I$(<D) $(patsubst %,-I%,$(USES_$(call folder_of,$<))) -c $< -o $@

define folder_lib
$(call lib,$(1)): $(call objs,$(call srcs,$(1)))
	@mkdir -p $$(@D)
	@rm -f $$@
	@echo "  AR    $$@"
	$(Q)ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call folder_lib,$(f))))

# libatmiq: one shared library that holds common and ubbconfig too, and shows the public words alone.
$(SHARED): $(call objs,$(foreach f,libatmiq ubbconfig common,$(call srcs,$(f)))) libatmiq/libatmiq.map
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) -shared $(SANFLAGS) -pthread -Wl,-soname,libatmiq.so.1 -Wl,--version-script=libatmiq/libatmiq.map \
	    -o $@ $(filter %.o,$^) $(SYS_common) $(SYS_ubbconfig)
$(SONAMES:%=$(T)/lib/%): $(SHARED)
	@ln -sf libatmiq.so.1 $@
$(T)/include/%: libatmiq/include/%
	@mkdir -p $(@D)
	@cp $< $@
$(RM_FILE): libatmiq/RM
	@mkdir -p $(@D)
	@cp $< $@
# A page, and a link to it for each other name that it has.
$(B)/man/%.stamp: man/%
	@mkdir -p $(@D) $(T)/share/man/man$(subst .,,$(suffix $*))
	@cp $< $(T)/share/man/man$(subst .,,$(suffix $*))/$*
	@for name in $$(awk '/^\.Sh/ { name = $$2 == "NAME" } name && $$1 == ".Nm" { print $$2 }' $<); do \
	    [ -f man/$$name$(suffix $*) ] || ln -sf $* $(T)/share/man/man$(subst .,,$(suffix $*))/$$name$(suffix $*); done
	@touch $@

$(T)/share/systemd/%: examples/systemd/%	# for where make install puts it
	@mkdir -p $(@D)
	@sed 's|@PREFIX@|$(PREFIX)|g' $< >$@

$(T)/apps/%: examples/%
	@mkdir -p $(@D)
	@cp -p $< $@

# A client program of ours links the shared library like anybody else's; the others link their folders.
client_programs := TMQFORWARD
define program
$(T)/bin/$(1): $(call objs,$(MAIN_$(1))) $(call libs_of,$(call folder_of,$(MAIN_$(1)))) $(if $(filter $(1),$(client_programs)),$(SHARED))
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	$(Q)$(CC) $(SANFLAGS) -pthread -rdynamic -Wl$(comma)--as-needed -o $$@ $$(filter %.o %.a,$$^) $(if $(filter $(1),$(client_programs)),$(SHARED) -Wl$(comma)-rpath$(comma)'$$$$ORIGIN/../lib') \
	    $(call sys_of,$(call folder_of,$(MAIN_$(1))))
endef
$(foreach p,$(PROGRAMS),$(eval $(call program,$(p))))

# TMQUEUE and TMQFORWARD for buildserver, to be built anew with buffer types of one's own: the object that is linked, which only says
# which program it is, and the program as a library that it opens (libatmiq/svrown.c).
OWN := TMQUEUE TMQFORWARD
define own
$(T)/lib/$(1).o: libatmiq/ext/own.c
	@mkdir -p $$(@D) $(B)/obj/own
	@echo "  CC    $$@"
	$(Q)$$(CC) $$(ALL_CFLAGS) -MMD -MP -MF $(B)/obj/own/$(1).d -DPROGRAM=$(1) -Ilibatmiq/include -c $$< -o $$@
$(B)/obj/own/main_$(1).o: $(MAIN_$(1))
	@mkdir -p $$(@D)
	@echo "  CC    $$@"
	$(Q)$$(CC) $$(ALL_CFLAGS) -fvisibility=default -Wno-missing-prototypes -Dmain=atmiq_program_main -MMD -MP -Ilibatmiq/include \
	    -I$(call folder_of,$(MAIN_$(1))) $(patsubst %,-I%,$(USES_$(call folder_of,$(MAIN_$(1))))) -c $$< -o $$@
$(T)/lib/$(1).so: $(B)/obj/own/main_$(1).o $(call libs_of,$(call folder_of,$(MAIN_$(1)))) $(SHARED)
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@echo '{ global: atmiq_program_main; local: *; };' >$(B)/obj/own/$(1).map
	$(Q)$$(CC) -shared $(SANFLAGS) -pthread -Wl,--as-needed -Wl,--version-script=$(B)/obj/own/$(1).map -o $$@ $$(filter %.o %.a,$$^) \
	    $(SHARED) -Wl,-rpath,'$$$$ORIGIN' $(call sys_of,$(call folder_of,$(MAIN_$(1))))
endef
$(foreach p,$(OWN),$(eval $(call own,$(p))))

include tests/tests.mk
include bench/bench.mk

-include $(shell find $(B) -name '*.d' 2>/dev/null)

# --- packages -------------------------------------------------------------------------------------------------------

DEPS      := gcc g++ libc6-dev make libdb5.3-dev libzmq3-dev libconfig-dev libedit-dev uthash-dev libcunit1-dev mandoc
DEPS_LINT := clang clang-tidy cppcheck
# Of bench_peers alone, and not installed by us.
DEPS_PEERS := libpq-dev
missing    = $(filter-out $(shell dpkg-query -W -f '$${db:Status-Abbrev} $${Package}\n' $(1) 2>/dev/null | sed -n 's/^ii *//p'),$(1))
get        = $(if $(call missing,$(1)),echo "  APT   $(call missing,$(1))" && apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
	install --no-install-recommends $(call missing,$(1)) >/dev/null,:)
deps:
	@$(call get,$(DEPS))
deps-lint: deps
	@$(call get,$(DEPS_LINT))

# --- what is run ----------------------------------------------------------------------------------------------------

# Packages first, then the build, then the run: a make of its own for each, so that -j cannot mix them.
submake := $(MAKE) --no-print-directory B=$(B)
# Programs that tests and demo build with buildserver and buildclient must carry the sanitizer of the library they load.
RUN_ENV := B=$(B) SAN=$(SAN) SANFLAGS="$(SANFLAGS)"

demo:
	@$(submake) deps
	@$(submake) -s -j$(JOBS) all >/dev/null
	@$(RUN_ENV) examples/demo/run

check:
	@$(submake) deps
	@$(submake) -j$(JOBS) tests
	@$(RUN_ENV) tests/run $(or $(CHECK),$(UNIT) $(STORIES))

check-long:
	@$(submake) deps
	@$(submake) -j$(JOBS) tests
	@TEST_LONG=1 TEST_TIMEOUT=3600 SOAK_MINUTES=2 $(RUN_ENV) tests/run $(or $(CHECK),$(UNIT) $(STORIES) $(SOAKS))
	@$(if $(CHECK),,FUZZ_SECONDS=60 $(MAKE) --no-print-directory fuzz)

crash:	# TRANSFER_SECONDS=120 MATRIX_STRIDE=1 MATRIX_ONLY=DECI
	@$(submake) deps
	@$(submake) -j$(JOBS) tests
	@TEST_TIMEOUT=1800 $(RUN_ENV) tests/run -v $(or $(CHECK),$(CRASHES))

soak:	# SOAK_MINUTES=30
	@$(submake) deps
	@$(submake) -j$(JOBS) tests
	@TEST_TIMEOUT=$$(($${SOAK_MINUTES:-30} * 60 + 1800)) $(RUN_ENV) tests/run -v $(or $(CHECK),$(SOAKS))

bench:	# PEERS=1: PostgreSQL and Redis beside us, whichever is installed
	@$(submake) deps
	@$(if $(and $(PEERS),$(call missing,$(DEPS_PEERS))),echo "PEERS=1 needs $(DEPS_PEERS) (apt-get install $(DEPS_PEERS))"; exit 1)
	@$(submake) -j$(JOBS) PEERS=$(PEERS) benches >/dev/null
	@$(RUN_ENV) PEERS=$(PEERS) bench/run $(or $(BENCH),$(BENCH_RUN))

fuzz:
	@$(submake) deps-lint
	@$(MAKE) --no-print-directory -j$(JOBS) B=build/fuzz CC=clang OPT=-O1 SAN=fuzzer-no-link$(comma)address$(comma)undefined fuzzers
	@tests/fuzz/run build/fuzz

show-uses:	# for tests/lint: a folder and whom it may include, a line each
	@$(foreach f,$(FOLDERS),echo $(f) $(USES_$(f));)

lint:
	@$(submake) deps-lint
	@$(MAKE) --no-print-directory -j$(JOBS) B=build/lint WARN="$(WARN) -Werror" tests benches
	@tests/lint

install: all
	@mkdir -p $(PREFIX)
	@cd $(T) && tar cf - . | tar xf - -C $(abspath $(PREFIX))
	@for u in $(notdir $(UNITS)); do sed 's|@PREFIX@|$(abspath $(PREFIX))|g' examples/systemd/$$u >$(PREFIX)/share/systemd/$$u; done

clean:
	rm -rf build
