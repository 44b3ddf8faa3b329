#pragma once
#include <string>

namespace cudp::verify {

// Forms of texts in a certificate. They are so narrow that no sentence of free text fits in.

/// Returns whether the text is digits and points, e.g. "0.1.0".
bool is_version(const std::string& text);
/// Returns whether the text is a commit's hash, with "-dirty" after it if sources were changed; or
/// "unknown".
bool is_commit(const std::string& text);
/// Returns whether the text names a compiler: a name in letters, a space, and a version.
bool is_compiler(const std::string& text);
/// Returns whether the text is a backend's name, e.g. "cpu:avx2".
bool is_backend(const std::string& text);
/// Returns whether the text is 64 hexadecimal digits.
bool is_sha256(const std::string& text);
/// Returns whether the text is the sentence in which cudp describes the earlier training of a file
/// of initial weights. Only the name of that training's data, in quotation marks, is free text.
bool is_earlier_training(const std::string& text);

}  // namespace cudp::verify
