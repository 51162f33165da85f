// The command-line arguments of the examples: "--tp 2" and the like.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab::examples {

using Numbers = std::map<std::string, int*>;

// Reads pairs of a name and a number into `numbers`. Throws kInvalidArgument for other arguments.
inline void read_numbers(int argc, char** argv, const Numbers& numbers) {
  std::vector<std::string> names;
  for (const auto& [name, number] : numbers) names.push_back(name);
  for (int i = 1; i < argc; i += 2) {
    const auto number = numbers.find(argv[i]);
    RANKLAB_CHECK(number != numbers.end() && i + 1 < argc, ErrorKind::kInvalidArgument, .where = argv[0],
                  .what = "not a setting and its number", .got = argv[i], .want = join(names, ", ") + " N");
    *number->second = std::atoi(argv[i + 1]);
  }
}

// Runs a main program. RETURNS: its exit code; prints what was wrong.
template <typename Run>
int exit_code_of(const Run& run) {
  try {
    return run();
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return exit_code(error.kind());
  }
}

}  // namespace ranklab::examples
