#include "runtime/report/escape.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace cudp::page {
namespace {

using namespace std::string_view_literals;

TEST(PageEscape, ALineShowsWhatAReaderWouldNotSee) {
  EXPECT_EQ(one_line("größe, Übergang"), "größe, Übergang");
  EXPECT_EQ(one_line("a\nb\tc\r"), "a\\u{a}b\\u{9}c\\u{d}");
  EXPECT_EQ(one_line("no\xe2\x80\xaesey"), "no\\u{202e}sey");
  EXPECT_EQ(one_line("zero\xe2\x80\x8bwidth\xef\xbb\xbf"), "zero\\u{200b}width\\u{feff}");
  EXPECT_EQ(one_line("nul\0"sv), "nul\\u{0}");
  EXPECT_EQ(one_line("\xff\xc0\xaf\xed\xa0\x80"), "\\x{ff}\\x{c0}\\x{af}\\x{ed}\\x{a0}\\x{80}");
  EXPECT_EQ(one_line("cut \xe2\x80"), "cut \\x{e2}\\x{80}");
  EXPECT_EQ(one_line("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
}

TEST(PageEscape, HtmlHasNoMarkOfItsOwn) {
  EXPECT_EQ(html("</title><script>alert('x\"&')</script>"),
            "&lt;/title&gt;&lt;script&gt;alert(&#39;x&quot;&amp;&#39;)&lt;/script&gt;");
}

TEST(PageEscape, MarkdownHasNoMarkOfItsOwn) {
  EXPECT_EQ(markdown("![x](http://evil) *b* `c` | <i>"),
            "!\\[x\\](http&#58;//evil) \\*b\\* \\`c\\` \\| &lt;i&gt;");
  EXPECT_EQ(markdown("# no heading"), "\\# no heading");
  EXPECT_EQ(markdown("--- \n---"), "\\--- \\\\u\\{a\\}---");
  EXPECT_EQ(markdown("1. no list"), "1\\. no list");
  EXPECT_EQ(markdown("76.25 %"), "76.25 %");
  EXPECT_EQ(markdown("someone@example.org, www.example.org"),
            "someone&#64;example.org, www&#46;example.org");
}

TEST(PageEscape, YamlIsOneQuotedText) {
  EXPECT_EQ(yaml("a \"b\" \\ c\n---"), "\"a \\\"b\\\" \\\\ c\\\\u{a}---\"");
}

}  // namespace
}  // namespace cudp::page
