// A file that a command is asked to write, looked at before the work begins: nobody's data is lost by a name given
// twice, in the wrong order, or by a shell's completion. What the command reads is never written over, nor is anything
// that is no regular file (a device, a link, a pipe); a file that somebody else made only with --force.
// Cost: a few system calls. Thread rule: pure; between this and the writing another process may still make the file.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace ranklab {

struct OutputFile {
  std::string path = {};
  std::string option = {};  // what named it: "--out"
  std::vector<std::string> inputs =
      {};                          // files, and folders with all that lies in them; what is no path is passed over
  std::function<bool()> own = {};  // of a regular file at path: the command wrote it earlier. None: that cannot be told
  bool force = false;
};

// Throws kInvalidArgument.
void check_output(const OutputFile& file);

// Whether the file begins like this; not when it cannot be read.
bool begins_with(const std::string& path, const std::string& text);

}  // namespace ranklab
