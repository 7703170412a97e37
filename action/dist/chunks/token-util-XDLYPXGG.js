import{createRequire as createRequireOfNode}from'node:module';const require=createRequireOfNode(import.meta.url);
import{c as a}from"./chunk-CCECMTCN.js";import"./chunk-DT62OQ6F.js";export default a();
