#pragma once
#include <string>
#include <string_view>

namespace cudp::verify {

/// Returns "" if the bytes are a picture and nothing else; otherwise the reason. A picture is a PNG
/// file with the chunks that gnuplot writes: no text, no chunk of another kind, and nothing after
/// the pixels or after the file's end. The pixels themselves are not looked at.
std::string check_picture(std::string_view bytes);

}  // namespace cudp::verify
