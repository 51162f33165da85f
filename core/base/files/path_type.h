// What lies at a path, asked without exceptions. Links are followed. A path that may not be looked at (no permission, a
// loop of links, a name that is too long) counts as there and as no folder: whoever opens it then tells the system's
// reason, and nobody is told "no such file" about what exists. Cost: one stat(). Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

bool is_folder(const std::string& path);
bool is_there(const std::string& path);
// Throws kIo with the system's reason, the caller's words, and `want`: what should have been there.
void require_folder(const std::string& path, const std::string& where, const std::string& want);

}  // namespace ranklab
