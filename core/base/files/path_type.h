// What lies at a path, asked without exceptions. Links are followed. A path that may not be looked at (no permission, a
// loop of links, a name that is too long) counts as existing and as not a folder: opening it then reports the system's
// reason, instead of "no such file" for something that exists. Cost: one stat(). Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

bool is_folder(const std::string& path);
bool is_there(const std::string& path);
// Throws kIo with the system's reason, the caller's words, and `want`: what should have been there.
void require_folder(const std::string& path, const std::string& where, const std::string& want);

}  // namespace ranklab
