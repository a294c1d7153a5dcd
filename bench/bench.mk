# Benchmarks.  bench_store drives the engine in process, bench_link the sockets alone; the others are programs like a
# user's, by atmi.h.  bench/run runs them; figures are printed, nothing is asserted.
BENCHES   := $(filter-out bench_peers,$(patsubst bench/%.c,%,$(wildcard bench/bench_*.c))) $(if $(PEERS),bench_peers)
# What is run, in this order: bench_instructions is bench_store under valgrind.
BENCH_RUN := bench_link bench_store bench_instructions bench_queue bench_tx bench_forward bench_big $(if $(PEERS),bench_peers)
inner_store   := qspace
inner_waiters := qspace
inner_link    := common
outer_peers   := -lpq
$(B)/obj/bench/bench_peers.o: ALL_CFLAGS += -I/usr/include/postgresql
bench_of   = $(patsubst bench_%,%,$(1))

$(B)/obj/bench/%: ALL_CFLAGS += -Wno-write-strings
define bench
$(B)/obj/bench/$(1).o: bench/$(1).c
	@mkdir -p $$(@D)
	@echo "  CC    $$<"
	$(Q)$$(CC) $$(ALL_CFLAGS) -MMD -MP -Ilibatmiq/include \
	    $(if $(inner_$(call bench_of,$(1))),$(USES_bench:%=-I%)) -c $$< -o $$@
$(B)/bench/$(1): $(B)/obj/bench/$(1).o $(if $(inner_$(call bench_of,$(1))),$(call libs_of,$(inner_$(call bench_of,$(1)))),$(SHARED))
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	$(Q)$$(CC) $$(SANFLAGS) -pthread -o $$@ $$^ \
	    $(if $(inner_$(call bench_of,$(1))),$(call sys_of,$(inner_$(call bench_of,$(1)))),-Wl,-rpath,'$$$$ORIGIN/../tuxdir/lib') $(outer_$(call bench_of,$(1)))
endef
$(foreach t,$(BENCHES),$(eval $(call bench,$(t))))

benches: all $(BENCHES:%=$(B)/bench/%)
.PHONY: benches
