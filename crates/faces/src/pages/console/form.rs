//! Fields of forms: labels, help, what was filled in, and what is wrong with it.

use std::fmt;

use askama::filters::HtmlSafe;
use axum::{http::StatusCode, response::Response};
use portcullis_core::authorization::OAuthForm;

use super::{api::Problem, signed_in::Guest};
use crate::pages::{
    form::Form,
    html::{Html, Render, html, markup},
};

/// Text of the program; attributes and help are markup.
type Word = &'static str;
/// Values that are chosen from, each with its name.
pub(super) type Choices = &'static [(Word, Word)];

/// Values that were filled in to a form, and why it was refused.
#[derive(Debug, Default)]
pub(super) struct FormState {
    values: Option<OAuthForm>,
    pub(super) problem: Option<Problem>,
}

/// How a field is filled in.
#[derive(Debug, Default)]
pub(super) enum Control<'a> {
    #[default]
    Line,
    /// A line that is not shown, and that no page sends again.
    Secret,
    Area,
    Choice(Choices),
    /// One of these texts, or nothing.
    Option(Vec<&'a str>),
}

/// A field of a form or of the input of a tool, or a filter of a list, as a template shows it.
#[derive(Debug, Default)]
pub(super) struct Field<'a> {
    name: &'a str,
    label: &'a str,
    control: Control<'a>,
    /// Value that was filled in; none in a new form.
    value: Option<&'a str>,
    /// Browsers insist that it is filled in.
    pub(super) required: bool,
    /// A star says that it has to be filled in.
    pub(super) has_star: bool,
    pub(super) attributes: Word,
    pub(super) placeholder: &'a str,
    pub(super) help: Html,
    problem: Option<&'a Problem>,
    /// Name that the API has for it.
    member: &'a str,
    /// The label is in front of it.
    is_inline: bool,
}

impl FormState {
    /// A form with what a person filled in.
    pub(super) fn of(form: &Form) -> Self {
        Self { values: Some(form.0.clone()), problem: None }
    }

    /// A form with what a person filled in, and why it was refused, if it was.
    pub(super) fn refused(form: &Form, problem: Option<Problem>) -> Self {
        Self { problem, ..Self::of(form) }
    }

    /// The reason that the form was refused, which is looked at first.
    pub(super) fn alert(&self) -> Html {
        let Some(Problem { message, code, .. }) = &self.problem else { return Html::default() };
        html(
            "<div class=\"notice bad\" role=\"alert\" tabindex=\"-1\" autofocus><p><strong>{}</strong> \
             <code>{}</code></p></div>",
            &[message, code],
        )
    }

    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.values.as_ref().is_some_and(|it| it.get(name) == Some(value))
    }

    pub(super) fn status(&self) -> StatusCode {
        self.problem.as_ref().map_or(StatusCode::OK, |problem| problem.status)
    }

    fn field<'a>(&'a self, name: Word, label: Word, control: Control<'a>) -> Field<'a> {
        let value = self.values.as_ref().map(|it| it.get(name).unwrap_or_default());
        Field { problem: self.problem.as_ref(), ..Field::new(name, label, control, value) }
    }

    pub(super) fn line(&self, name: Word, label: Word) -> Field<'_> {
        self.field(name, label, Control::Line)
    }

    pub(super) fn secret(&self, name: Word, label: Word) -> Field<'_> {
        self.field(name, label, Control::Secret)
    }

    pub(super) fn area(&self, name: Word, label: Word) -> Field<'_> {
        self.field(name, label, Control::Area)
    }

    pub(super) fn choice(&self, name: Word, label: Word, all: Choices) -> Field<'_> {
        self.field(name, label, Control::Choice(all))
    }
}

/// The mark of what has to be filled in.
pub(super) fn star(is_shown: bool) -> Html {
    markup(if is_shown { " <b title=\"required\">*</b>" } else { "" })
}

/// A note below a label or a field, if there is one.
pub(super) fn note(text: &dyn Render) -> Html {
    let text = html("{}", &[text]);
    if text.is_empty() { text } else { html("<small>{}</small>", &[&text]) }
}

impl<'a> Field<'a> {
    pub(super) fn new(
        name: &'a str,
        label: &'a str,
        control: Control<'a>,
        value: Option<&'a str>,
    ) -> Self {
        Self { name, label, control, value, member: name, ..Self::default() }
    }

    /// A field with its label in front of it, as filters have.
    pub(super) fn inline(self) -> Self {
        Self { is_inline: true, ..self }
    }

    pub(super) fn required(self) -> Self {
        Self { required: true, has_star: true, ..self }
    }

    pub(super) fn preset(self, preset: Word) -> Self {
        Self { value: self.value.or(Some(preset)), ..self }
    }

    pub(super) fn with(self, attributes: Word) -> Self {
        Self { attributes, ..self }
    }

    pub(super) fn help(self, help: Word) -> Self {
        Self { help: markup(help), ..self }
    }

    pub(super) fn member(self, member: Word) -> Self {
        Self { member, ..self }
    }

    /// Message of the API about the field.
    fn wrong(&self) -> Html {
        let path = format!("/{}", self.member);
        let Some(it) = self.problem.and_then(|problem| problem.violation(&path)) else {
            return Html::default();
        };
        let error = "<small class=\"error\" id=\"wrong-{}\">{}</small>";
        html(error, &[&self.name, &it.text("/message")])
    }

    fn control(&self, wrong: &Html) -> Html {
        let Self { name, attributes, placeholder, .. } = self;
        let value = self.value.unwrap_or_default();
        let selected = |own: &str| markup(if own == value { " selected" } else { "" });
        let is_wrong = " aria-invalid=\"true\" aria-describedby=\"wrong-{}\"";
        let attributes = Html::from([
            html(if attributes.is_empty() { "{}" } else { " {}" }, &[&markup(attributes)]),
            html(if placeholder.is_empty() { "{}" } else { " placeholder=\"{}\"" }, &[placeholder]),
            markup(if self.required { " required" } else { "" }),
            if wrong.is_empty() { Html::default() } else { html(is_wrong, &[name]) },
        ]);
        let select = |options: Html| {
            html("<select name=\"{}\"{}>{}</select>", &[name, &attributes, &options])
        };
        match &self.control {
            Control::Line => {
                html("<input name=\"{}\" value=\"{}\"{}>", &[name, &value, &attributes])
            }
            Control::Secret => {
                let secret =
                    "<input name=\"{}\" type=\"password\" autocomplete=\"new-password\"{}>";
                html(secret, &[name, &attributes])
            }
            // The first line feed is the browser's.
            Control::Area => {
                html("<textarea name=\"{}\"{}>\n{}</textarea>", &[name, &attributes, &value])
            }
            Control::Choice(all) => {
                let option = |(own, text): &(Word, Word)| {
                    html("<option value=\"{}\"{}>{}</option>", &[own, &selected(own), text])
                };
                select(all.iter().map(option).collect())
            }
            Control::Option(all) => {
                let option = |text: &&str| html("<option{}>{}</option>", &[&selected(text), text]);
                let nothing = markup("<option value=\"\"></option>");
                select([nothing].into_iter().chain(all.iter().map(option)).collect())
            }
        }
    }

    pub(super) fn show(&self) -> Html {
        let wrong = self.wrong();
        let control = self.control(&wrong);
        if self.is_inline {
            return html("<label>{} {}</label>", &[&self.label, &control]);
        }
        let field = "<label><span>{}{}</span>{}{}{}</label>";
        let (star, help) = (star(self.has_star), note(&self.help));
        html(field, &[&self.label, &star, &control, &help, &wrong])
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show().fmt(f)
    }
}

/// A field is made of markup.
impl HtmlSafe for Field<'_> {}

impl Guest {
    /// The form that was refused, as it comes back; or the way to a proof that the person lacks.
    pub(super) fn refuse(&self, form: &Form, problem: Problem) -> Result<FormState, Response> {
        match self.step_up_of(&problem) {
            Some(forwarded) => Err(forwarded),
            None => Ok(FormState::refused(form, Some(problem))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::json::Json, *};

    #[test]
    fn a_refused_form_comes_back_with_what_was_sent_and_what_is_wrong() {
        let violations = json!([{"path": "/expires_in", "message": "has to be <b>"}]);
        let details = Json(json!({ "violations": violations }));
        let problem = Some(Problem { details, ..Problem::default() });
        let sent = Form::of([("days", "soon\""), ("role", "b"), ("key", "secret")]);
        let state = FormState { problem, ..FormState::of(&sent) };
        let empty = FormState::default();

        for (field, expected) in [
            (
                state.line("days", "Days").required().member("expires_in"),
                "<label><span>Days <b title=\"required\">*</b></span><input name=\"days\" value=\"soon&quot;\" \
                 required aria-invalid=\"true\" aria-describedby=\"wrong-days\"><small class=\"error\" \
                 id=\"wrong-days\">has to be &lt;b&gt;</small></label>",
            ),
            (
                state.choice("role", "Role", &[("a", "A"), ("b", "B")]),
                "<label><span>Role</span><select name=\"role\"><option value=\"a\">A</option>\
                 <option value=\"b\" selected>B</option></select></label>",
            ),
            (
                state.secret("key", "Key"),
                "<label><span>Key</span><input name=\"key\" type=\"password\" autocomplete=\"new-password\">\
                 </label>",
            ),
            (
                empty.area("text", "Text").preset("x").with("rows=\"2\"").help("a <i>b</i>"),
                "<label><span>Text</span><textarea name=\"text\" rows=\"2\">\nx</textarea>\
                 <small>a <i>b</i></small></label>",
            ),
        ] {
            assert_eq!(field.to_string(), expected);
        }
    }
}
