#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/report/run_certificate.hpp"

namespace cudp {

/// Part of the explanation of a certificate: a heading, such as "promise", and the sentences under
/// it.
struct Sentences {
  std::string heading;
  std::vector<std::string> sentences;
};

/// Returns a name that the user chose, in quotation marks. Quotation marks and line breaks in it
/// are replaced, so that no name can end the quotation and add a sentence to a page.
std::string quoted(std::string name);

/// Explains a run's privacy certificate in sentences, under the headings status, promise, meaning,
/// how, released, test rows and not covered. If the certificate states no epsilon, there is only
/// the heading status; if the run ended before it trained because its budget did not suffice, there
/// is no heading how. `cudp account RUN` prints them, and the pages of release/ contain them.
std::vector<Sentences> sentences_of(const RunCertificate& certificate);

/// Returns the sentences under one heading of a certificate's explanation (sentences_of()); empty
/// if it has no such heading.
std::vector<std::string> sentences_under(std::string_view heading,
                                         const RunCertificate& certificate);

/// Sentence for reports that states which values of epsilon are customary in machine learning, with
/// its source.
inline constexpr std::string_view kCustomary =
    "Ponomareva et al. 2023 (arXiv:2303.00654) call epsilon up to 1 strong and up to 10 reasonable "
    "for machine learning";

/// Returns the largest probability with which an attacker can guess correctly whether a unit of
/// privacy is in the data, if it is in the data with probability 1/2: (e^epsilon + delta) /
/// (e^epsilon + 1). It is 1/2 plus half of the total variation that (epsilon, delta) allows
/// (Kairouz, Oh, Viswanath 2015).
double max_right_guesses(double epsilon, double delta);

/// Returns the factor e^epsilon as text for a sentence like "at most 3.1 times as likely", rounded
/// up; "any number of" if it is above 1e6.
std::string times_text(double epsilon);

/// Returns a fraction as a percentage with one digit after the point, rounded up: "95.3 %".
std::string percent_up(double share);

}  // namespace cudp
