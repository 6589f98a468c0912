//! Codes: given for a consent, used once.

use std::sync::Arc;

use portcullis_core::{
    authorization::{Code, Consented},
    id::{ConsentId, GrantId},
    refusal::Refusal,
};
use portcullis_store::AuthorizationCode;

use super::{
    Authorization,
    asking::{ConsentQuestion, Step},
};
use crate::identity::login::person::Person;

impl Authorization {
    /// Sends the browser back with a code for what a person consented to.
    pub(super) async fn grant(
        self: &Arc<Self>,
        asked: ConsentQuestion,
        consent: ConsentId,
    ) -> Result<Step, Refusal> {
        let consented = asked.consented(consent);
        let code = self.code_for(&consented).await?;
        let issuer = self.issuer().unwrap_or_default();
        let request = consented.terms().request();
        Ok(Step::Redirect(request.answered(&[("code", code.expose())], issuer)))
    }

    async fn code_for(&self, consented: &Consented<Arc<Person>>) -> Result<Code, Refusal> {
        let asked = consented.terms();
        let person = asked.person();
        let code = Code::generate(&*self.base.random);
        let mut granted = consented.grant();
        // It goes into every event of the tokens: no place for what DLP would not let out.
        granted.client.name = self.screening.recordable(&granted.client.name);
        let kept = AuthorizationCode {
            hash: code.hash(),
            org_id: person.session.org_id,
            principal_id: person.session.principal_id,
            grant_id: GrantId::new(self.base.ids()),
            granted,
            redirect_uri: asked.redirect_uri().clone(),
            challenge: consented.challenge(),
            dpop_jkt: consented.key(),
            scopes: asked.scopes(),
            method: person.session.method.clone(),
            lineage: person.lineage.clone(),
            login: person.session.login.clone(),
            expires_at: self.base.now().plus_seconds(Code::LIFE_SECONDS),
            spent_at: None,
        };
        self.base.store.insert_code(&kept).await?;
        self.quotas.sources.note_live(&kept.hash);
        Ok(code)
    }
}
