# atmiq - durable transactional queues behind the ATMI calls.  GNU make.
#
#   make            everything, into build/plain/tuxdir (a TUXDIR: bin lib include udataobj share/man)
#   make deps       install the Debian packages that build and tests need; nothing when they are there
#   make demo       the story of a message, with numbers          make check   all tests but the long ones
#   make lint       analysers and manual pages                    make crash   kill -9 runs with an oracle
#   make bench      figures                                       make install PREFIX=/opt/atmiq
#   make SAN=address,undefined check        make SAN=thread check

VERSION      := 0.1.0
B            ?= build/$(or $(SAN),plain)
PREFIX       ?= /opt/atmiq
CC           ?= gcc
OPT          ?= -O2
comma        := ,
SANFLAGS     := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
WARN         := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla
CFLAGS       ?= $(OPT) -g
ALL_CFLAGS    = -std=gnu11 -D_GNU_SOURCE -fPIC -pthread -fvisibility=hidden $(WARN) $(CFLAGS) $(SANFLAGS)

# Who may include whom: left uses right, never back.
USES_common     :=
USES_ubbconfig  := common
USES_qspace     := common
USES_libatmiq   := ubbconfig common
USES_bbl        := ubbconfig common
USES_tmqueue    := qspace ubbconfig common
USES_qmadmin    := qspace ubbconfig common
USES_tmqforward := libatmiq/ext ubbconfig common
USES_bench      := qspace common

# Each outside library has one home.
SYS_common    := -lzmq
SYS_ubbconfig := -lconfig
SYS_qspace    := -ldb-5.3
SYS_qmadmin   := -ledit

FOLDERS  := common ubbconfig qspace libatmiq bbl tmqueue tmqforward qmadmin

# Programs, and the file that holds main; the rest of a folder is its library.
MAIN_tmloadcf    := ubbconfig/tmloadcf.c
MAIN_tmunloadcf  := ubbconfig/tmunloadcf.c
MAIN_BBL         := bbl/main.c
MAIN_tmboot      := bbl/tmboot.c
MAIN_tmshutdown  := bbl/tmshutdown.c
MAIN_tmadmin     := bbl/tmadmin.c
MAIN_tmipcrm     := bbl/tmipcrm.c
MAIN_TMQUEUE     := tmqueue/main.c
MAIN_TMQFORWARD  := tmqforward/main.c
MAIN_qmadmin     := qmadmin/main.c
MAIN_buildserver := libatmiq/buildserver.c
MAIN_buildclient := libatmiq/buildclient.c
PROGRAMS := tmloadcf tmunloadcf BBL tmboot tmshutdown tmadmin tmipcrm TMQUEUE TMQFORWARD qmadmin buildserver buildclient
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
SONAMES  := libatmiq.so libtux.so libbuft.so libtmib.so libqm.so
SHARED   := $(T)/lib/libatmiq.so.1
RM_FILE  := $(T)/udataobj/RM

.PHONY: all deps demo check check-long crash bench lint fuzz install clean
all: $(SHARED) $(SONAMES:%=$(T)/lib/%) $(HEADERS) $(RM_FILE) $(BINS) $(PAGES:%=$(T)/share/%.stamp)

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -Ilibatmiq/include -I$(<D) $(patsubst %,-I%,$(USES_$(call folder_of,$<))) -c $< -o $@

define folder_lib
$(call lib,$(1)): $(call objs,$(call srcs,$(1)))
	@mkdir -p $$(@D)
	@rm -f $$@
	ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call folder_lib,$(f))))

# libatmiq: one shared library that holds common and ubbconfig too, and shows the public words alone.
$(SHARED): $(call objs,$(foreach f,libatmiq ubbconfig common,$(call srcs,$(f)))) libatmiq/libatmiq.map
	@mkdir -p $(@D)
	$(CC) -shared $(SANFLAGS) -pthread -Wl,-soname,libatmiq.so.1 -Wl,--version-script=libatmiq/libatmiq.map \
	    -o $@ $(filter %.o,$^) $(SYS_common) $(SYS_ubbconfig)
$(SONAMES:%=$(T)/lib/%): $(SHARED)
	ln -sf libatmiq.so.1 $@
$(T)/include/%: libatmiq/include/%
	@mkdir -p $(@D)
	cp $< $@
$(RM_FILE): libatmiq/RM
	@mkdir -p $(@D)
	cp $< $@
$(T)/share/man/%.stamp: man/%
	@mkdir -p $(T)/share/man/man$(subst .,,$(suffix $*))
	cp $< $(T)/share/man/man$(subst .,,$(suffix $*))/$*
	@touch $@

# A client program of ours links the shared library like anybody else's; the others link their folders.
client_programs := TMQFORWARD
define program
$(T)/bin/$(1): $(call objs,$(MAIN_$(1))) $(call libs_of,$(call folder_of,$(MAIN_$(1)))) $(if $(filter $(1),$(client_programs)),$(SHARED))
	@mkdir -p $$(@D)
	$(CC) $(SANFLAGS) -pthread -rdynamic -o $$@ $$(filter %.o %.a,$$^) $(if $(filter $(1),$(client_programs)),$(SHARED) -Wl$(comma)-rpath$(comma)'$$$$ORIGIN/../lib') \
	    $(call sys_of,$(call folder_of,$(MAIN_$(1))))
endef
$(foreach p,$(PROGRAMS),$(eval $(call program,$(p))))

include tests/tests.mk

-include $(shell find $(B) -name '*.d' 2>/dev/null)

clean:
	rm -rf build
