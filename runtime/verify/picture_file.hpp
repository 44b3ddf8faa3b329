#pragma once
#include <string>
#include <string_view>

namespace cudp::verify {

/// Checks that the bytes are a PNG picture and contain nothing else. Returns "" if so, otherwise
/// the reason. The picture may have only the chunks that gnuplot writes: no text, no chunk of
/// another kind, and nothing after the pixels or after the file's end. The pixels themselves are
/// not checked.
std::string check_picture(std::string_view bytes);

}  // namespace cudp::verify
