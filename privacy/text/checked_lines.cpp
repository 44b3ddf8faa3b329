#include "privacy/text/checked_lines.hpp"

#include "privacy/text/words.hpp"

namespace cudp::privacy {

void Checksum::add(std::string_view text) {
  for (const char c : text) state_ = (state_ ^ static_cast<unsigned char>(c)) * 1099511628211u;
}

void Checksum::add_line(std::string_view line) {
  add(line);
  add("\n");
}

std::string Checksum::text() const {
  std::string digits(16, '0');
  for (std::size_t i = 0; i < 16; ++i)
    digits[i] = "0123456789abcdef"[(state_ >> (60 - 4 * i)) & 15];
  return digits;
}

void CheckedLines::add(std::string_view line) {
  checksum_.add_line(line);
  text_.append(line).append(" #").append(checksum_.text()).append("\n");
}

std::string_view LineReader::take() {
  ++number_;
  const std::size_t newline = text_.find('\n');
  if (newline == std::string_view::npos) expected("a whole line, and more up to 'end'", text_);
  std::string_view line = text_.substr(0, newline);
  text_.remove_prefix(newline + 1);
  const std::size_t mark = line.rfind(" #");
  if (mark == std::string_view::npos) expected("a line with its checksum", line);
  const std::string_view found = line.substr(mark + 2);
  line = line.substr(0, mark);
  checksum_.add_line(line);
  if (found != checksum_.text()) expected("checksum " + checksum_.text(), found);
  return line;
}

void LineReader::expect_end() {
  ++number_;
  if (!text_.empty()) expected("nothing after 'end'", text_);
}

}  // namespace cudp::privacy
