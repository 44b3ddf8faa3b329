#pragma once
#include <string>
#include <string_view>

namespace cudp::verify {

/// Returns "" if the bytes are a PNG picture and nothing else; otherwise the reason why not. Such a
/// picture has only the chunks that gnuplot writes: no text, no chunk of another kind, and nothing
/// after the pixels or after the file's end. The pixels themselves are not checked.
std::string check_picture(std::string_view bytes);

}  // namespace cudp::verify
