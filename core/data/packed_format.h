// Recognizes files that, according to their first bytes, are compressed or columnar instead of plain text; read as
// bytes, they would train a model on noise. Torch-free. Thread rule: pure functions.
#pragma once
#include <string>
#include <string_view>

namespace ranklab {

// `begins`: the first bytes of the file, at least 16 if it has that many. Throws kInvalidArgument saying what the file
// is and how to extract the text; `where`: the location named in the error.
void require_unpacked(const std::string& path, std::string_view begins, const std::string& where);
// The same, reading these bytes itself. Throws kIo.
void require_unpacked(const std::string& path, const std::string& where);

}  // namespace ranklab
