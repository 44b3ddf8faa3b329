#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/report/run_certificate.hpp"

namespace cudp {

/// One heading of a certificate's explanation, and its sentences.
struct Sentences {
  std::string heading;
  std::vector<std::string> sentences;
};

/// Returns a name that the user chose, in quotation marks. Quotation marks and line breaks in it
/// are replaced, so that no name can end the quotation and add a sentence to a page.
std::string quoted(std::string name);

/// Explains a certificate in sentences, under the headings status, promise, meaning, how, released,
/// test rows and not covered; only status if it claims no epsilon, and no how if the run was
/// refused. `cudp account RUN` prints them, and the pages of release/ contain them.
std::vector<Sentences> sentences_of(const RunCertificate& certificate);

/// Returns the sentences under one heading; empty if there is no such heading.
std::vector<std::string> sentences_under(std::string_view heading,
                                         const RunCertificate& certificate);

/// What others call a small epsilon, with the source.
inline constexpr std::string_view kCustomary =
    "Ponomareva et al. 2023 (arXiv:2303.00654) call epsilon up to 1 strong and up to 10 reasonable "
    "for machine learning";

/// Returns the largest share of right guesses about one unit that is in the data with probability
/// 1/2: (e^epsilon + delta) / (e^epsilon + 1). It is 1/2 plus half of the total variation that
/// (epsilon, delta) allows (Kairouz, Oh, Viswanath 2015).
double max_right_guesses(double epsilon, double delta);

/// Returns e^epsilon as text, rounded up; "any number of" above 1e6.
std::string times_text(double epsilon);

/// Returns a share as text with one digit, rounded up: "95.3 %".
std::string percent_up(double share);

}  // namespace cudp
