# Benchmarks.  bench_store drives the engine in process, bench_link the sockets alone; the others are programs like a
# user's, by atmi.h.  bench/run runs them; figures are printed, nothing is asserted.
BENCHES   := $(patsubst bench/%.c,%,$(wildcard bench/bench_*.c))
inner_store := qspace
inner_link  := common
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
	    $(if $(inner_$(call bench_of,$(1))),$(call sys_of,$(inner_$(call bench_of,$(1)))),-Wl,-rpath,'$$$$ORIGIN/../tuxdir/lib')
endef
$(foreach t,$(BENCHES),$(eval $(call bench,$(t))))

benches: all $(BENCHES:%=$(B)/bench/%)
.PHONY: benches
