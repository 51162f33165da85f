// Checks a file that a command is asked to write before the work begins: nobody loses data through a name given twice,
// in the wrong order, or by shell completion. A command's inputs are never overwritten, nor is anything but a regular
// file (a device, a link, a pipe); a file that somebody else created is overwritten only with --force.
// Cost: a few system calls. Thread rule: pure; between this and the writing another process may still create the file.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace ranklab {

struct OutputFile {
  std::string path = {};
  std::string option = {};  // the option that named it: "--out"
  // files, and folders with everything in them; entries that are not paths are ignored
  std::vector<std::string> inputs = {};
  std::function<bool()> own = {};  // true: this command wrote the file at path earlier. None: cannot be determined
  bool force = false;
};

// Throws kInvalidArgument.
void check_output(const OutputFile& file);

// True when the file begins with `text`; false when it cannot be read.
bool begins_with(const std::string& path, const std::string& text);

}  // namespace ranklab
