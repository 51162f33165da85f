#include "core/base/injected_bug.h"

namespace ranklab {

thread_local constinit uint64_t injected_bugs_of_thread = 0;

// Not added to those before: a run inside another, such as a reference, has only the bugs that it was given.
InjectedBugs::InjectedBugs(std::span<const InjectedBug> bugs) : before_(injected_bugs_of_thread) {
  injected_bugs_of_thread = 0;
  for (const InjectedBug bug : bugs) injected_bugs_of_thread |= uint64_t{1} << static_cast<unsigned>(bug);
}

}  // namespace ranklab
