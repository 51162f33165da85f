// Files whose first bytes say that they are no text but hold one packed or in columns: as bytes they would train a
// model on noise. Torch-free. Thread rule: pure functions.
#pragma once
#include <string>
#include <string_view>

namespace ranklab {

// `begins`: the first bytes of the file, 16 or more if it has them. Throws kInvalidArgument saying what it is and how
// to get the text out; `where`: of the message.
void require_unpacked(const std::string& path, std::string_view begins, const std::string& where);
// ... which it reads. Throws kIo.
void require_unpacked(const std::string& path, const std::string& where);

}  // namespace ranklab
