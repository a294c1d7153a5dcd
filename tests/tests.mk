# Tests.  test_FOLDER_what.c: one module, linked with that folder's library.  story_what.c: real processes, linked
# with libatmiq like a user's program.  crash_what.c: kill -9 with an oracle.  given*.c: what they share.
UNIT    := $(patsubst tests/%.c,%,$(wildcard tests/test_*.c))
STORIES := $(patsubst tests/%.c,%,$(wildcard tests/story_*.c))
CRASHES := $(patsubst tests/%.c,%,$(wildcard tests/crash_*.c))
SOAKS   := $(patsubst tests/%.c,%,$(wildcard tests/soak_*.c))
unit_of  = $(word 2,$(subst _, ,$(1)))
# The ATMI binding takes char * where a program writes a string literal.
$(B)/obj/tests/%: ALL_CFLAGS += -Wno-write-strings $(if $(SAN),-DTEST_SANFLAGS='"$(SANFLAGS)"')
# A peer that is not ours, to see that we speak the protocol and not just a dialect.
SYS_test_common_link := -lzmq
# A resource manager that is not ours, in the same transactions.
SYS_story_xa_foreign := -ldb-5.3
# A story that looks at what a folder's code reads and writes.
SEES_story_load := common
TESTLIB := $(call objs,$(wildcard tests/given*.c tests/fault*.c))

define unit_test
$(B)/obj/tests/$(1).o: tests/$(1).c
	@mkdir -p $$(@D)
	@echo "  CC    $$<"
	$(Q)$$(CC) $$(ALL_CFLAGS) -MMD -MP -Itests -Ilibatmiq/include -I$(call unit_of,$(1)) $(patsubst %,-I%,$(USES_$(call unit_of,$(1)))) -c $$< -o $$@
$(B)/tests/$(1): $(B)/obj/tests/$(1).o $(call libs_of,$(call unit_of,$(1)))
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	$(Q)$$(CC) $$(SANFLAGS) -pthread -rdynamic -o $$@ $$^ $(call sys_of,$(call unit_of,$(1))) $(SYS_$(1)) -lcunit
endef
$(foreach t,$(UNIT),$(eval $(call unit_test,$(t))))

define story_test
$(B)/obj/tests/$(1).o: tests/$(1).c
	@mkdir -p $$(@D)
	@echo "  CC    $$<"
	$(Q)$$(CC) $$(ALL_CFLAGS) -MMD -MP -Itests -Ilibatmiq/include $(SEES_$(1):%=-I%) -c $$< -o $$@
$(B)/tests/$(1): $(B)/obj/tests/$(1).o $(TESTLIB) $(foreach f,$(SEES_$(1)),$(call lib,$(f))) $(SHARED)
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	$(Q)$$(CC) $$(SANFLAGS) -pthread -o $$@ $$^ -Wl,-rpath,'$$$$ORIGIN/../tuxdir/lib' $(SYS_$(1)) -lcunit -lm
endef
$(foreach t,$(STORIES) $(CRASHES) $(SOAKS),$(eval $(call story_test,$(t))))

# Libraries that a server is started with, to make its writes fail.
PRELOADS := $(patsubst tests/preload/%.c,$(B)/tests/%.so,$(wildcard tests/preload/*.c))
$(B)/tests/%.so: tests/preload/%.c tests/given_control.h
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-missing-prototypes -fvisibility=default -shared -fPIC -Itests -Ilibatmiq/include -o $@ $< -ldl

# Fuzz targets may use every reader: they link all that has one.
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz_uses := tmqueue tmrq bbl console qspace ubbconfig common
define fuzzer
$(B)/obj/tests/fuzz/$(1).o: tests/fuzz/$(1).c
	@mkdir -p $$(@D)
	@echo "  CC    $$<"
	$(Q)$$(CC) $$(ALL_CFLAGS) -Wno-missing-prototypes -MMD -MP -Ilibatmiq/include $(fuzz_uses:%=-I%) -c $$< -o $$@
$(B)/fuzz/$(1): $(B)/obj/tests/fuzz/$(1).o $(foreach f,$(fuzz_uses),$(call lib,$(f)))
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	$(Q)$$(CC) -fsanitize=fuzzer,address,undefined -pthread -o $$@ $$^ $(foreach f,$(fuzz_uses),$(SYS_$(f)))
endef
$(foreach t,$(FUZZERS),$(eval $(call fuzzer,$(t))))
fuzzers: $(FUZZERS:%=$(B)/fuzz/%)

tests: all $(PRELOADS) $(UNIT:%=$(B)/tests/%) $(STORIES:%=$(B)/tests/%) $(CRASHES:%=$(B)/tests/%) $(SOAKS:%=$(B)/tests/%)
.PHONY: tests fuzzers
