#include "core/base/injected_bug.h"

namespace ranklab {

thread_local constinit uint64_t injected_bugs_of_thread = 0;

// The bugs replace those of the enclosing run: a nested run, such as a reference run, has only the bugs that it was
// given.
InjectedBugs::InjectedBugs(std::span<const InjectedBug> bugs) : before_(injected_bugs_of_thread) {
  injected_bugs_of_thread = 0;
  for (const InjectedBug bug : bugs) injected_bugs_of_thread |= uint64_t{1} << static_cast<unsigned>(bug);
}

}  // namespace ranklab
